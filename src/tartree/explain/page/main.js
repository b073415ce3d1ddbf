// The page: reads its data, keeps the choices of the reader, and draws.

import { chartCards } from "./charts.js";
import { nodeDetails } from "./details.js";
import { sharedCharts } from "./effects.js";
import { byId, element, show } from "./elements.js";
import { encodeRow } from "./encoder.js";
import { openModel, predict, readLeaf } from "./engine.js";
import { makeForm, makeRowChoice, typicalValues } from "./form.js";
import { buildGraph, chooseNodes, likeliestPath } from "./graph.js";
import { countText, TEXTS } from "./numbers.js";
import { predictionParts, predictionText } from "./prediction.js";
import { showSummary } from "./summary.js";
import { certificateParts, makeToolbar } from "./toolbar.js";
import { makeTree } from "./tree.js";
import { nameNodes } from "./labels.js";

const report = JSON.parse(byId("data").textContent);
const models = report.models.map((model) => (report.recomputable ? openModel(model) : model));
const graphs = models.map((model) => buildGraph(model.layers));
const names = graphs.map(nameNodes);
const narrow = window.matchMedia("(max-width: 640px)").matches;
const state = {
  model: 0,
  member: 0,
  target: 0,
  budget: narrow ? 12 : 20, // ends that are drawn at first; the reader can ask for more
  opened: new Set(),
  closed: new Set(),
  selected: graphs[0].root,
  index: null, // among the rows of the page; -1 for typical values
  values: null, // of the row, null where all rows are shown
  edited: false,
};
if (graphs[0].nodes.filter((node) => node.kind === "leaf").length <= 32 && !narrow) state.budget = 32;

const tree = makeTree(byId("canvas"), { onSelect: select, onToggle: toggle });
const form = report.recomputable ? makeForm(byId("values"), report, changeValue) : null;
const rowChoice = report.recomputable ? makeRowChoice(byId("row-choice"), report, chooseRow) : null;
const toolbar = makeToolbar(byId("toolbar"), report, state.budget, {
  onMember: (member) => update({ member }),
  onModel: (model) => update({ model, opened: new Set(), closed: new Set(), selected: graphs[model].root }),
  onBudget: (budget) => update({ budget, opened: new Set(), closed: new Set() }),
  onZoom: tree.zoomBy,
  onFit: tree.fit,
});

function update(changes) {
  Object.assign(state, changes);
  render();
}

function select(node) {
  update({ selected: node });
}

function toggle(node) {
  const isOpen = state.scene.chosen.open.has(node);
  (isOpen ? state.opened : state.closed).delete(node.id);
  (isOpen ? state.closed : state.opened).add(node.id);
  update({ selected: node });
}

function chooseRow(index) {
  if (index === null) return update({ index: null, values: null, edited: false });
  const values =
    index < 0 ? typicalValues(report) : report.rows.columns.map((column) => (column.length ? column[index] : null));
  return update({ index, values, edited: false });
}

function changeValue(column, value) {
  const values = state.values ? [...state.values] : typicalValues(report);
  values[column] = value;
  update({ values, edited: true, index: state.index === null ? -1 : state.index });
}

function truthOfRow() {
  const { truth } = report.rows;
  return state.edited || state.index === null || state.index < 0 || !truth ? null : truth[state.index];
}

// The result of the engine for the row, as the drawing reads it.
function rowOf(result, encoded) {
  const { arrivals, shares, numbers } = result.members[state.member];
  const { output } = models[state.model];
  const leafValues = numbers.map((entry) => {
    const leaf = readLeaf(output, entry);
    if (output.isClasses) return leaf;
    return leaf.map(({ mean }, target) => output.center[target] + output.scale[target] * mean);
  });
  const arrival = (node) => arrivals[node.layer][node.index];
  const flow = ({ from, branch }) => arrival(from) * shares[from.layer][from.index][branch];
  return {
    arrival,
    flow,
    path: likeliestPath(graphs[state.model], arrival, flow),
    answer: (leaf) => ({ predicted: leafValues[leaf.index] }), // prediction of the leaf for this row
    shares: (node) => (node.kind === "leaf" ? null : shares[node.layer][node.index]),
    truth: truthOfRow(),
    values: state.values,
    encoded,
  };
}

function makeScene() {
  const graph = graphs[state.model];
  const member = models[state.model].members[state.member];
  const encoded = state.values && report.recomputable ? encodeRow(report.columns, report.features, state.values) : null;
  const result = encoded ? predict(models[state.model], encoded) : null;
  const full = encoded && state.model ? predict(models[0], encoded) : null;
  const row = result ? rowOf(result, encoded) : null;
  const data = (node) => (member.nodes ? member.nodes[node.number] : null);
  const { budget, opened, closed } = state;
  const way = new Set(row ? row.path.map((step) => step.node) : []);
  const wanted = (node) => way.has(node) || (row !== null && row.arrival(node) >= 0.1);
  const chosen = chooseNodes(graph, (node) => (data(node) ? data(node).arrival : 1), {
    budget,
    opened,
    closed,
    wanted,
  });
  const leafValues = member.nodes.filter(Boolean).map((node) => node.predicted[state.target]);
  return {
    report,
    graph,
    chosen,
    data,
    row,
    result,
    full,
    names: names[state.model],
    member: state.member,
    target: report.task === "regression" ? state.target : 0,
    range: [Math.min(...leafValues), Math.max(...leafValues)],
    condition: (node) => member.conditions[node.number],
    corrections: member.corrections,
    leafModel: (node) => member.leafModels[node.index],
    flow: (link) => (member.flows ? member.flows[link.edge] : 1 / link.from.children.length),
    selected: state.selected,
  };
}

function render() {
  const scene = makeScene();
  state.scene = scene;
  toolbar.show(state);
  show(byId("certificate"), certificateParts(report, state.model));
  announce(scene);
  const shared = sharedCharts(scene);
  byId("shared").hidden = !shared;
  if (shared) show(byId("shared-model"), shared);
  tree.draw(scene);
  show(byId("node-details"), nodeDetails(scene, state.selected, { onRow: chooseRow, onToggle: toggle }));
  if (!report.recomputable) return;
  show(byId("prediction"), predictionParts(scene, scene.result, scene.full, select));
  rowChoice.show(state.index, state.edited);
  form.show(state.values || typicalValues(report));
}

// For readers who do not see the page: what changed, in one sentence.
function announce({ result }) {
  const size = state.model ? `Simplified to ${countText(models[state.model].nLeaves, "leaf", "leaves")}. ` : "";
  const text = result ? `${size}${predictionText(report, result)}` : size;
  if (byId("announcement").textContent !== text) show(byId("announcement"), text);
}

function renderCharts() {
  const actions = {
    onCell: (truth, predicted) =>
      goToRows(
        (index) => report.rows.truth[index] === truth && report.rows.predicted[index] === predicted,
        `True ${report.outputs[truth]}, predicted ${report.outputs[predicted]}`,
      ),
    onRow: (index) => {
      chooseRow(index);
      byId("tree").scrollIntoView();
    },
  };
  show(byId("charts"), chartCards(report, state.target, actions));
}

function goToRows(test, text) {
  if (!rowChoice) return;
  rowChoice.filter(test, text);
  byId("tree").scrollIntoView();
}

function start() {
  showSummary(report);
  byId("theme").addEventListener("change", (event) => {
    document.documentElement.dataset.theme = event.target.value;
  });
  byId("print").addEventListener("click", () => window.print());
  if (report.task === "regression" && report.outputs.length > 1) {
    show(
      byId("target"),
      report.outputs.map((name, index) => element("option", { value: index }, name)),
    );
    byId("target-choice").hidden = false;
    byId("target").addEventListener("change", (event) => {
      state.target = Number(event.target.value);
      renderCharts();
      render();
    });
  }
  const isTree = graphs[0].isTree;
  show(byId("tree-head"), isTree ? "The tree" : "The graph");
  const shape = isTree ? "" : " Neighbouring decisions share children, so that paths part and meet again.";
  show(
    byId("tree-words"),
    `Rows enter at the ${narrow ? "top" : "left"} and flow to the leaves; `,
    `streams are as wide as the share of rows they carry.${shape}`,
  );
  show(
    byId("keys"),
    "Keys: arrows move from node to node, Enter shows a node, Space folds and unfolds, + − 0 zoom. ",
    "Or drag, pinch, Ctrl and the wheel.",
  );
  if (models[0].branching === "hard") {
    show(byId("arrival-words"), "Each row takes one branch of every decision, and arrives at one leaf.");
    show(byId("decision-words"), "Sends a row to the upper branch where its condition holds, otherwise to the lower one.");
    show(byId("leaf-words"), "Makes the prediction for the rows that arrive.");
    if (models[0].members[0].corrections) {
      show(
        byId("leaf-words"),
        "Predicts by the model for all rows and what the nodes on its path change of it: a sum of what columns add.",
      );
    }
  }
  byId("quality").hidden = !report.quality && !report.importances.length;
  if (!report.recomputable) {
    show(
      byId("prediction"),
      element(
        "p",
        {},
        "This model has custom decisions or leaves, which a page cannot hold: ",
        "rows cannot be computed here.",
      ),
    );
    byId("values-card").hidden = true;
  }
  byId("tree-grid").classList.toggle("deep", report.models[0].layers.length > 5); // all of the width for the drawing
  if (narrow) byId("values-card").open = false;
  renderCharts();
  render();
  let width = byId("canvas").clientWidth;
  new ResizeObserver(() => {
    const now = byId("canvas").clientWidth;
    if (!now || now === width) return; // 0 while the page is being closed
    width = now;
    render();
  }).observe(byId("canvas"));
}

// For tests and for the curious: predictions from the console, such as tartree.predictRow(0).
window.tartree = {
  report,
  predictValues: (values, model = 0) => {
    const { probabilities, targets } = predict(models[model], encodeRow(report.columns, report.features, values));
    return probabilities || targets;
  },
  predictRow: (index, model = 0) =>
    window.tartree.predictValues(
      report.rows.columns.map((column) => (column.length ? column[index] : null)),
      model,
    ),
  ...TEXTS,
};

start();
