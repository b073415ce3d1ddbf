// Details of a node: its decision or prediction, the rows that arrive, and its effect on the chosen row.

import { changeParts, decisionCharts } from "./effects.js";
import { classColour, element } from "./elements.js";
import { countText, numberText, shareText, signedText, valueText } from "./numbers.js";
import { branchName, termLabel, weightText } from "./labels.js";

/**
 * The content of the panel for a node.
 *
 * `scene` is that of the tree, with `row` null or {arrival, shares(node), values, encoded}; `onRow` is called with the
 * number of a row that the reader chooses, `onToggle` with a node to open or fold.
 */
export function nodeDetails(scene, node, { onRow, onToggle }) {
  if (!node)
    return [
      element("h3", {}, "A node"),
      element("p", { class: "muted" }, "Choose a node of the tree to see how it decides."),
    ];
  const data = scene.data(node);
  const parts = [element("h3", {}, scene.names.get(node))];
  if (data) parts.push(rowsFacts(scene, data));
  if (scene.row) parts.push(rowFacts(scene, node));
  if (node.kind === "decision") parts.push(...decisionParts(scene, node));
  if (node.kind === "joint") parts.push(element("p", {}, "Passes its whole arrival on to its child."));
  if (scene.corrections) parts.push(...changeParts(scene, node));
  else if (node.kind === "leaf") parts.push(...leafParts(scene, node));
  if (data && data.typical) parts.push(typicalRows(scene, data.typical, onRow));
  if (node.kind !== "leaf" && node !== scene.graph.root) {
    const isOpen = scene.chosen.open.has(node);
    const text = isOpen ? "Fold this branch" : `Unfold this branch: ${countText(node.nLeaves, "leaf", "leaves")}`;
    parts.push(element("button", { type: "button", class: "fold", onclick: () => onToggle(node) }, text));
  }
  return parts.filter(Boolean);
}

function rowsFacts({ report, target }, data) {
  if (data.arrival === 0) return element("p", { class: "muted" }, "None of the rows arrives here.");
  const facts = [
    fact(
      "Rows",
      `${data.rows.toLocaleString("en-US")} of ${report.nRows.toLocaleString("en-US")} have their most probable path here`,
    ),
    fact("Mean arrival", shareText(data.arrival)),
  ];
  if (report.task === "regression") {
    if (data.mean) {
      const spread = `${numberText(data.mean[target])} ± ${numberText(data.spread[target])}`;
      facts.push(fact("True values", `${spread} (mean, standard deviation)`));
    }
    facts.push(fact("Mean prediction", numberText(data.predicted[target])));
    return element("dl", { class: "facts" }, facts);
  }
  const shares = data.classes || data.predicted;
  return element(
    "div",
    {},
    element("dl", { class: "facts" }, facts),
    element("p", { class: "label" }, data.classes ? "Classes of the rows that arrive" : "Mean prediction"),
    shareBars(report.outputs, shares),
  );
}

function fact(name, text) {
  return [element("dt", {}, name), element("dd", {}, text)];
}

/** Bars of the shares of classes, the largest first. */
export function shareBars(names, shares, most = 6) {
  const order = shares.map((share, label) => ({ share, label })).sort((a, b) => b.share - a.share);
  const bars = order
    .slice(0, most)
    .map(({ share, label }) =>
      element(
        "li",
        { "data-label": label },
        element("span", { class: "bar-name", title: names[label] }, names[label]),
        element("span", { class: "bar", share, colour: classColour(label), "aria-hidden": "true" }),
        element("span", { class: "bar-share" }, shareText(share)),
      ),
    );
  const more = order.length - most;
  if (more > 0)
    bars.push(element("li", { class: "more muted small" }, `and ${countText(more, "other class", "other classes")}`));
  return element("ul", { class: "bars" }, bars);
}

function rowFacts({ row }, node) {
  const shares = row.shares(node);
  const arrival = `The chosen row arrives with ${shareText(row.arrival(node))}`;
  if (!shares || shares.length < 2) return element("p", { class: "row-fact" }, `${arrival}.`);
  const parts = shares.map((share, branch) => `${shareText(share)} to ${branchName(branch, shares.length)}`);
  return element("p", { class: "row-fact" }, `${arrival}; of that, ${parts.join(", ")}.`);
}

function decisionParts(scene, node) {
  const condition = scene.condition(node);
  const n = node.children.length;
  if (condition.kind === "even") return [element("p", {}, "Every branch gets the same share, whatever the row.")];
  const parts = [];
  if (condition.kind === "gradient") {
    parts.push(
      element(
        "p",
        { class: "muted small" },
        "A small network decides. The bars show its mean slope on the rows, not its exact sum.",
      ),
    );
  }
  if (n === 2) {
    const [entry] = condition.functions;
    if (!entry) return parts;
    const name = (branch) =>
      element("strong", { class: `branch-name branch-${branch}` }, capital(branchName(branch, 2)));
    let when = condition.kind === "gradient" ? " where its sum is above 0" : ` when ${condition.texts[0]}`;
    if (entry.nEffects > 1) when = ` when the sum below is above ${numberText(-entry.encodedBias)}`;
    parts.push(element("p", { class: "conditions" }, name(0), `${when}. `, name(1), " otherwise."));
    if (entry.effects.length) return [...parts, ...decisionCharts(scene, condition)];
    parts.push(termBars(scene, entry, ["◀ lower", "upper ▶"], ["var(--branch-1)", "var(--branch-0)"]));
    return parts;
  }
  condition.functions.forEach((entry, branch) => {
    const head = element(
      "summary",
      {},
      element("strong", { class: `branch-name branch-${branch % 6}` }, capital(branchName(branch, n))),
    );
    const bars = termBars(scene, entry, ["◀ less", "more ▶"], ["var(--muted)", `var(--branch-${branch % 6})`]);
    parts.push(element("details", { open: branch === 0 }, head, bars));
  });
  return [element("p", {}, `The branch with the largest sum gets the largest share.`), ...parts];
}

function leafParts(scene, node) {
  const { report } = scene;
  const model = scene.leafModel(node);
  const parts = [];
  if (model.kind === "gradient") {
    parts.push(
      element(
        "p",
        { class: "muted small" },
        "A small network predicts. The bars show its mean slope on the rows, not its exact sum.",
      ),
    );
  }
  model.functions.forEach((entry, index) => {
    if (report.task === "regression" && index !== scene.target) return;
    const binary = report.task === "classification" && report.outputs.length === 2;
    const colours = binary
      ? [classColour(0), classColour(1)]
      : ["var(--muted)", report.task === "regression" ? "var(--accent)" : classColour(index)];
    const sides = binary ? [`◀ ${report.outputs[0]}`, `${report.outputs[1]} ▶`] : ["◀ less", "more ▶"];
    const bars = entry.terms.length
      ? termBars(scene, entry, sides, colours)
      : element("p", {}, `The same for every row: ${numberText(entry.bias)}`);
    const isValue = report.models[0].output.hasLinearMean;
    const name = isValue ? `Value of ${model.names[index]}` : capital(model.names[index]);
    parts.push(
      model.functions.length === 1 || report.task === "regression"
        ? element("div", {}, element("p", { class: "label" }, name), bars)
        : element("details", { open: index === 0 }, element("summary", {}, name), bars),
    );
  });
  return parts;
}

// One bar for each term: to the right if a value above the middle adds, to the left if it subtracts.
function termBars({ report, row }, entry, sides, colours) {
  const largest = Math.max(...entry.terms.map(([, , , strength]) => strength), 1e-12);
  const rows = entry.terms.map(([feature, weight, encoded, strength]) => {
    const right = weight > 0;
    const bar = element("span", {
      class: `push ${right ? "push-right" : "push-left"}`,
      share: strength / largest,
      colour: colours[right ? 1 : 0],
      role: "img",
      "aria-label": `pushes to ${sides[right ? 1 : 0].replace(/[◀▶] ?/g, "").trim()}`,
    });
    const label = termLabel(report, feature);
    const entry = row ? rowPart(report, row, feature, encoded) : null;
    return element(
      "li",
      {},
      element("span", { class: "term-name", title: label }, label),
      element("span", { class: "push-track" }, bar),
      element("span", { class: "term-weight muted" }, weightText(report, feature, weight), entry ? ` · ${entry}` : ""),
    );
  });
  const rest = entry.nTerms - entry.terms.length;
  return element(
    "div",
    { class: "terms" },
    element(
      "p",
      { class: "sides", "aria-hidden": "true" },
      element("span", { colour: colours[0] }, sides[0]),
      element("span", { colour: colours[1] }, sides[1]),
    ),
    element("ul", {}, rows),
    rest > 0 ? element("p", { class: "muted small" }, `and ${countText(rest, "weaker feature")}`) : null,
    entry.bias === null || entry.method !== "linear"
      ? null
      : element("p", { class: "muted small" }, `Constant of the sum: ${signedText(entry.bias)}`),
  );
}

function rowPart(report, row, feature, encoded) {
  const entry = report.features[feature];
  const column = report.columns[entry.column];
  const value = row.values[entry.column];
  return `here ${valueText(column, value)}: ${signedText(Number((encoded * row.encoded[feature]).toPrecision(2)))}`;
}

function typicalRows({ report }, rows, onRow) {
  const indices = rows.map((number) => report.rows.numbers.indexOf(number)).filter((index) => index >= 0);
  if (!indices.length) return null;
  return element(
    "p",
    { class: "typical" },
    "Typical rows: ",
    indices.map((index) =>
      element(
        "button",
        { type: "button", class: "chip", onclick: () => onRow(index) },
        String(report.rows.numbers[index] + 1),
      ),
    ),
  );
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
