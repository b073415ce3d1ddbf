// The head of the page: the model, and its quality on the rows of the report.

import { byId, element, show } from "./elements.js";
import { countText, numberText, scoreText, shareText } from "./numbers.js";

const DECISIONS = { uniform: "even", linear: "linear", perceptron: "network" };
const LEAVES = { constant: "constant", linear: "linear", perceptron: "network" };

/** Fill the summary, the subtitle and the foot. */
export function showSummary(report) {
  const used = report.columns.filter((column) => column.used).length;
  const what =
    report.task === "classification"
      ? `classifier of ${countText(report.outputs.length, "class", "classes")}`
      : `regression of ${report.outputs.join(", ")}`;
  show(
    byId("subtitle"),
    `${report.estimator} · ${what} · ${countText(report.nRows, "row")}, ${countText(used, "column")} used`,
  );
  show(byId("summary-words"), summaryText(report));
  show(
    byId("summary-tiles"),
    tiles(report).map(([name, value, more]) =>
      element(
        "div",
        { class: "tile" },
        element("dt", {}, name),
        element("dd", {}, value, more ? element("small", {}, more) : null),
      ),
    ),
  );
  const note = report.validation
    ? "Only the cross-validation estimates the quality on new rows: all other measures are on training rows."
    : "Measured on the rows of this report. If these are training rows, expect lower quality on new rows.";
  show(
    byId("summary-note"),
    report.quality ? note : "The report was made without true values, so it has no measures of quality.",
  );
  if (report.validation) showValidation(report.validation);
  show(
    byId("foot"),
    `Made with tartree ${report.version}. Everything on this page is in this one file, `,
    `${countText(report.rows.numbers.length, "row")} of the data included; nothing is sent anywhere.`,
  );
}

function showValidation({ score, mean, error, nFolds, words, columns, rows, chosen }) {
  byId("validation").hidden = false;
  const sentence = `${score} ${scoreText(mean)} ± ${error.toFixed(3)}, the mean of ${countText(nFolds, "fold")}`;
  show(byId("validation-words"), `On rows that were held out: ${sentence} and its standard error. ${words}`);
  byId("validation-table").hidden = !rows.length;
  const cells = (name, texts) => texts.map((text) => element(name, {}, text));
  show(
    byId("validation-table"),
    element(
      "table",
      { class: "numbers wide" },
      element("thead", {}, element("tr", {}, cells("th", columns))),
      element(
        "tbody",
        {},
        rows.map((row, index) => element("tr", { "aria-current": index === chosen ? "true" : null }, cells("td", row))),
      ),
    ),
  );
}

function summaryText(report) {
  const [model] = report.models;
  const [member] = model.members;
  const nDecisions = model.layers.flat().filter((children) => children.length > 1).length;
  if (!nDecisions) return singleLeafText(model, LEAVES[member.leaf?.kind] || "custom");
  const shared = model.layers.some((layer) => new Set(layer.flat()).size < layer.flat().length);
  const each =
    model.members.length > 1
      ? `${model.members.length} ${shared ? "graphs" : "trees"}, each with`
      : `One ${shared ? "graph, whose branches meet again," : "tree"} with`;
  const decisionKind = member.decision ? DECISIONS[member.decision.kind] : "custom";
  const leafKind = member.leaf ? LEAVES[member.leaf.kind] : "custom";
  const leaves = countText(model.nLeaves, `${leafKind} leaf`, `${leafKind} leaves`);
  const size = `${each} ${countText(nDecisions, `${decisionKind} decision`)} and ${leaves}.`;
  const mixed =
    model.selection === "single"
      ? "The prediction is that of the leaf with the largest arrival."
      : "The prediction is the mean of all leaves, weighted by arrival.";
  const mean = model.members.length > 1 ? " The prediction is the mean over the trees." : "";
  return `${size} ${mixed}${mean}`;
}

function singleLeafText(model, kind) {
  const each =
    model.members.length > 1 ? `${model.members.length} models without decisions: in each, ` : "No decisions: ";
  return `${each}${countText(model.nLeaves, `${kind} leaf`, `${kind} leaves`)} for every row.`;
}

function tiles(report) {
  const size = [
    [
      "Leaves",
      report.models[0].nLeaves.toLocaleString("en-US"),
      report.models[0].members.length > 1
        ? `in each of ${report.models[0].members.length} trees`
        : countText(report.models[0].layers.length, "layer of decisions", "layers of decisions"),
    ],
    [
      "Rows",
      report.nRows.toLocaleString("en-US"),
      report.rows.numbers.length < report.nRows
        ? `${report.rows.numbers.length.toLocaleString("en-US")} of them on this page`
        : "all on this page",
    ],
    ["Parameters", report.nParameters.toLocaleString("en-US"), ""],
  ];
  if (!report.quality) return size;
  const { validation } = report;
  if (!validation) return [...qualityTiles(report), ...size];
  const { score, mean, error, nFolds } = validation;
  const first = [
    `Cross-validated ${score}`,
    scoreText(mean),
    `± ${error.toFixed(3)} (standard error), on held-out rows, ${countText(nFolds, "fold")}`,
  ];
  const learnt = qualityTiles(report).map(([name, value, more]) => [`${name} on training rows`, value, more]);
  return [first, ...size, ...learnt];
}

function qualityTiles(report) {
  if (report.task === "classification") {
    const { accuracy, balancedAccuracy, majority, logLoss } = report.quality;
    return [
      ["Accuracy", shareText(accuracy), `the most frequent class alone: ${shareText(majority)}`],
      ["Balanced accuracy", shareText(balancedAccuracy), "mean over the classes"],
      ["Log loss", numberText(logLoss), "0 is best"],
    ];
  }
  const scores = report.quality.map(({ r2 }) => (r2 === null ? "–" : scoreText(r2))).join(" · ");
  const errors = report.quality.map(({ meanError }) => numberText(meanError)).join(" · ");
  const squares = report.quality.map(({ rootMeanSquare }) => numberText(rootMeanSquare)).join(" · ");
  return [
    ["R²", scores, "1 is best, 0 the mean"],
    ["Mean absolute error", errors, ""],
    ["Root mean square error", squares, ""],
  ];
}
