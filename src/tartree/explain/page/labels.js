// Names of nodes and terms.

import { middleValue } from "./encoder.js";
import { numberText, quantityOf, shareText, signedText, valueText } from "./numbers.js";

const BRANCHES = ["upper", "lower"];

/** Names of nodes: decisions and leaves are counted separately, from 1, layer by layer. */
export function nameNodes(graph) {
  const names = new Map();
  const counts = { decision: 0, leaf: 0, joint: 0 };
  const nouns = { decision: "Decision", leaf: "Leaf", joint: "Joint" };
  graph.nodes.forEach((node) => {
    if (node.kind === "leaf") names.set(node, `Leaf ${node.index + 1}`);
    else names.set(node, `${nouns[node.kind]} ${(counts[node.kind] += 1)}`);
  });
  return names;
}

/** The name of a branch: upper and lower, or a number. */
export function branchName(branch, nBranches) {
  return nBranches === 2 ? `${BRANCHES[branch]} branch` : `branch ${branch + 1}`;
}

/** A feature of a term in a few words: "age above 52.1", "sex = f". */
export function termLabel(report, feature) {
  const entry = report.features[feature];
  if (entry.kind !== "value") return entry.label;
  return `${entry.label} > ${valueText(report.columns[entry.column], roundedMiddle(report, entry))}`;
}

function roundedMiddle(report, feature) {
  const middle = middleValue(feature);
  return quantityOf(report.columns[feature.column]).isDay ? Math.round(middle / 86400) * 86400 : middle;
}

/** How much one unit of a feature adds to a sum, in words. */
export function weightText(report, feature, weight) {
  const entry = report.features[feature];
  const column = report.columns[entry.column];
  if (entry.kind !== "value") return signedText(weight);
  if (entry.knots.length) return `${signedText(weight)} per normal rank`;
  return `${signedText(weight)} per ${quantityOf(column).noun}`;
}

/** The one or two strongest features of a decision, as a title. */
export function decisionTitle(report, condition) {
  return decisionLabels(report, condition).join(condition && condition.isShort ? " " : ", ");
}

/** The same, one feature each. */
export function decisionLabels(report, condition) {
  if (!condition || condition.kind === "pass") return ["passes on"];
  if (condition.kind === "even") return ["even split"];
  if (condition.isShort && condition.functions[0].terms.length) return shortLabels(report, condition);
  const strongest = new Map();
  for (const { terms } of condition.functions) {
    for (const [feature, , , strength] of terms) {
      strongest.set(feature, Math.max(strength, strongest.get(feature) || 0));
    }
  }
  const ordered = [...strongest].sort((a, b) => b[1] - a[1]);
  if (!ordered.length) return [condition.kind === "gradient" ? "a network" : "the same for all"];
  const names = ordered.filter(([, strength]) => strength >= 0.6 * ordered[0][1]).slice(0, 2);
  return names.map(([feature]) => report.features[feature].label);
}

// The condition of one column; a long one on two lines, after the name of the column.
function shortLabels(report, condition) {
  const [text] = condition.texts;
  const { name } = report.columns[report.features[condition.functions[0].terms[0][0]].column];
  return text.length > 18 && text.startsWith(`${name} `) ? [name, text.slice(name.length + 1)] : [text];
}

/** The prediction of a leaf or a part of the tree, as [most probable class, its share], or [value]. */
export function answerLabels(report, data, target = 0) {
  if (!data) return [""];
  if (data.arrival === 0) return ["no rows"];
  if (report.task === "regression") return [numberText(data.predicted[target])];
  const best = data.predicted.indexOf(Math.max(...data.predicted));
  return [report.outputs[best], shareText(data.predicted[best])];
}

const FONT = '"Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
let pen = null;

/** The width of a text in pixels, for letters of the given size and weight. */
export function textWidth(text, size, weight) {
  pen = pen || document.createElement("canvas").getContext("2d");
  pen.font = `${weight} ${size}px system-ui, ${FONT}`;
  return pen.measureText(text).width;
}

/** Text cut to fit into so many pixels. */
export function fitText(text, pixels, size, weight) {
  if (textWidth(text, size, weight) <= pixels) return text;
  const letters = [...text];
  let few = 0;
  let many = letters.length;
  while (many - few > 1) {
    const middle = (few + many) >> 1;
    if (textWidth(`${letters.slice(0, middle).join("")}…`, size, weight) <= pixels) few = middle;
    else many = middle;
  }
  return `${letters.slice(0, few).join("").trimEnd()}…`;
}
