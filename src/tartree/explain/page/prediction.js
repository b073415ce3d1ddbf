// The prediction of the chosen row, computed here in the browser, and the way that led to it.

import { shareBars } from "./details.js";
import { element } from "./elements.js";
import { changeText, numberText, shareText } from "./numbers.js";
import { branchName, decisionTitle } from "./labels.js";

/**
 * The content of the panel.
 *
 * `found` is what the engine gave for the model on show, `full` for the whole model where another one is on show.
 */
export function predictionParts(scene, found, full, onSelect) {
  const { report, row } = scene;
  if (!found)
    return [
      element(
        "p",
        { class: "muted" },
        "Choose a row, or start from typical values, to see its way and its prediction.",
      ),
    ];
  const parts =
    report.task === "classification" ? classParts(report, found, row, full) : valueParts(report, found, row, full);
  const way = [element("p", { class: "label" }, "Most probable way"), pathList(scene, onSelect)];
  const nMembers = report.models[0].members.length;
  if (nMembers > 1) {
    way.push(
      element(
        "p",
        { class: "muted small" },
        `The prediction is the mean of ${nMembers} trees; the way is that of the tree shown.`,
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

function classParts(report, found, row, full) {
  const { probabilities } = found;
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

function valueParts(report, found, row, full) {
  return found.targets.flatMap((own, target) => {
    const name = report.outputs[target];
    const parts = [
      element(
        "p",
        { class: "answer" },
        report.outputs.length > 1 ? `${name}: ` : "Predicted ",
        element("strong", { id: target ? null : "answer" }, numberText(own.value)),
      ),
    ];
    if (own.low !== null) {
      parts.push(
        element(
          "p",
          {},
          `90% interval: ${numberText(own.low)} to ${numberText(own.high)}; standard deviation ${numberText(own.std)}`,
        ),
      );
    }
    if (row.truth !== null) {
      const inside = own.low === null || (own.low <= row.truth[target] && row.truth[target] <= own.high);
      const where = own.low === null ? "" : inside ? ", inside the interval" : ", outside the interval";
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
          `The whole model: ${numberText(before)}; change ${numberText(Math.abs(own.value - before))}.`,
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
