// The prediction of the chosen row, computed in the browser, and its path.

import { shareBars } from "./details.js";
import { element } from "./elements.js";
import { changeText, numberText, shareText } from "./numbers.js";
import { branchName, decisionTitle } from "./labels.js";

/**
 * The content of the panel.
 *
 * `result` is what the engine gave for the model on show, `full` for the whole model where another one is on show.
 */
export function predictionParts(scene, result, full, onSelect) {
  const { report, row } = scene;
  if (!result)
    return [
      element(
        "p",
        { class: "muted" },
        "Choose a row, or start from typical values, to see its path and its prediction.",
      ),
    ];
  const parts =
    report.task === "classification" ? classParts(report, result, row, full) : valueParts(report, result, row, full);
  const way = [element("p", { class: "label" }, "Most probable path"), pathList(scene, onSelect)];
  const nMembers = report.models[0].members.length;
  if (nMembers > 1) {
    way.push(
      element(
        "p",
        { class: "muted small" },
        `The prediction is the mean of ${nMembers} trees; the path is that of the tree shown.`,
      ),
    );
  }
  return [element("div", {}, parts), element("div", {}, way)];
}

/** The prediction in one sentence. */
export function predictionText(report, { probabilities, targets }) {
  if (targets)
    return targets.map(({ value }, target) => `Predicted ${report.outputs[target]}: ${numberText(value)}.`).join(" ");
  const best = probabilities.indexOf(Math.max(...probabilities));
  return `Predicted ${report.outputs[best]}, ${shareText(probabilities[best])}.`;
}

function classParts(report, result, row, full) {
  const { probabilities } = result;
  const best = probabilities.indexOf(Math.max(...probabilities));
  const parts = [
    element(
      "p",
      { class: "answer" },
      "Predicted ",
      element("strong", { id: "answer" }, report.outputs[best]),
      ` (${shareText(probabilities[best])})`,
    ),
  ];
  if (row.truth !== null) {
    const right = row.truth === best;
    parts.push(
      element(
        "p",
        { class: right ? "right" : "wrong" },
        `${right ? "✓" : "✗"} In the data: ${report.outputs[row.truth]}`,
      ),
    );
  }
  parts.push(shareBars(report.outputs, probabilities));
  if (full) {
    const change = Math.max(...probabilities.map((share, label) => Math.abs(share - full.probabilities[label])));
    parts.push(
      element(
        "p",
        { class: "small" },
        `The whole model: ${report.outputs[best]} ${shareText(full.probabilities[best])}. `,
        `Largest change for this row: ${changeText(change)}.`,
      ),
    );
  }
  return parts;
}

function valueParts(report, result, row, full) {
  return result.targets.flatMap((entry, target) => {
    const name = report.outputs[target];
    const parts = [
      element(
        "p",
        { class: "answer" },
        report.outputs.length > 1 ? `${name}: ` : "Predicted ",
        element("strong", { id: target ? null : "answer" }, numberText(entry.value)),
      ),
    ];
    if (entry.low !== null) {
      parts.push(
        element(
          "p",
          {},
          `90% interval: ${numberText(entry.low)} to ${numberText(entry.high)}; standard deviation ${numberText(entry.std)}`,
        ),
      );
    }
    if (row.truth !== null) {
      const inside = entry.low === null || (entry.low <= row.truth[target] && row.truth[target] <= entry.high);
      const where = entry.low === null ? "" : inside ? ", inside the interval" : ", outside the interval";
      parts.push(
        element("p", { class: inside ? "right" : "wrong" }, `In the data: ${numberText(row.truth[target])}${where}`),
      );
    }
    if (full) {
      const before = full.targets[target].value;
      parts.push(
        element(
          "p",
          { class: "small" },
          `The whole model: ${numberText(before)}; change ${numberText(Math.abs(entry.value - before))}.`,
        ),
      );
    }
    return parts;
  });
}

function pathList(scene, onSelect) {
  const { row, names } = scene;
  const item = (step) => {
    const name = element(
      "button",
      { type: "button", class: "link", onclick: () => onSelect(step.node) },
      names.get(step.node),
    );
    return element("li", {}, name, ` ${stepText(scene, step)}`);
  };
  return element("ol", { class: "path" }, row.path.map(item));
}

function stepText({ report, row, condition }, { node, link }) {
  if (node.kind === "leaf") return `arrives with ${shareText(row.arrival(node))}`;
  if (node.kind === "joint") return "passes on";
  const shares = row.shares(node);
  const taken = `${branchName(link.branch, shares.length)} ${shareText(shares[link.branch])}`;
  return `${decisionTitle(report, condition(node))}: ${taken}`;
}
