// Settings of the drawing: which tree, its size, how much is shown, and the zoom.

import { element, show } from "./elements.js";
import { boundText, changeText, countText, scoreText, shareText } from "./numbers.js";

const BUDGETS = [8, 16, 24, 40, 80, 256];

/** Fill the toolbar; `actions` are {onMember, onModel, onBudget, onZoom(factor), onFit}. Gives {show(state)}. */
export function makeToolbar(container, report, budget, actions) {
  const parts = [];
  const [full] = report.models;
  if (full.members.length > 1) {
    const options = full.members.map((_, index) =>
      element("option", { value: index }, `${index + 1} of ${full.members.length}`),
    );
    const member = element(
      "select",
      { id: "member", onchange: (event) => actions.onMember(Number(event.target.value)) },
      options,
    );
    parts.push(element("label", {}, "Tree ", member));
  }
  let slider = null;
  if (report.models.length > 1) {
    const last = report.models.length - 1;
    slider = element("input", {
      id: "simplify",
      type: "range",
      min: 0,
      max: last,
      step: 1,
      value: last,
      oninput: (event) => actions.onModel(last - Number(event.target.value)),
    });
    parts.push(element("label", { class: "slider" }, "Simplify ", slider));
  }
  if (full.nLeaves > BUDGETS[0]) {
    const sizes = [...new Set([...BUDGETS.filter((size) => size < full.nLeaves), full.nLeaves, budget])].sort(
      (a, b) => a - b,
    );
    const options = sizes.map((size) =>
      element(
        "option",
        { value: size, selected: size === budget },
        size >= full.nLeaves ? "all branches" : `about ${size} branches`,
      ),
    );
    parts.push(
      element(
        "label",
        {},
        "Show ",
        element("select", { id: "budget", onchange: (event) => actions.onBudget(Number(event.target.value)) }, options),
      ),
    );
  }
  const button = (id, text, label, action) =>
    element("button", { type: "button", id, "aria-label": label, title: label, onclick: action }, text);
  parts.push(
    element(
      "span",
      { class: "zoom-tools" },
      button("zoom-out", "−", "Zoom out", () => actions.onZoom(0.8)),
      button("zoom-in", "+", "Zoom in", () => actions.onZoom(1.25)),
      button("zoom-fit", "Fit", "Show everything", actions.onFit),
    ),
  );
  show(container, parts);
  return {
    show({ model }) {
      if (!slider) return;
      slider.value = String(report.models.length - 1 - model);
      slider.setAttribute(
        "aria-valuetext",
        `${countText(report.models[model].nLeaves, "leaf", "leaves")} of ${full.nLeaves}`,
      );
    },
  };
}

/** The certificate of a smaller model. */
export function certificateParts(report, index) {
  const [full] = report.models;
  if (report.models.length < 2) return [];
  if (!index) {
    const size = countText(full.nLeaves, "leaf", "leaves");
    return [
      element("p", { class: "muted" }, `The whole model: ${size}. Move the slider to the left for a smaller one.`),
    ];
  }
  const entry = report.models[index];
  const { measured, sampled, bound, score } = entry.certificate;
  const isClassifier = report.task === "classification";
  const several = !isClassifier && report.outputs.length > 1;
  const what = `largest change of any predicted ${isClassifier ? "probability" : "value"}`;
  const unit = several ? ", in standard deviations" : "";
  const amount = isClassifier ? changeText : boundText;
  const tile = (name, text, more) =>
    element("div", { class: "tile" }, element("dt", {}, name), element("dd", {}, text, element("small", {}, more)));
  const range = "for every row whose values lie within their ranges";
  const tiles = [
    tile("Leaves", `${entry.nLeaves} of ${full.nLeaves}`, "refitted to the predictions of the whole model"),
    tile("Measured", amount(measured), `${what}${unit}, on the ${countText(report.nRows, "row")}`),
    tile("Random rows", `up to ${amount(sampled)}`, `${what}${unit}, on random rows within the ranges of the columns`),
    bound === null
      ? tile("Bound", "none", `no bound below 1 could be proven ${range}`)
      : tile("Bound", `≤ ${amount(bound)}`, `${what}${unit}, ${range}`),
  ];
  if (score !== null) {
    const text = isClassifier ? shareText(score) : scoreText(score);
    tiles.push(tile(isClassifier ? "Accuracy" : "R²", text, "of the smaller model on the rows"));
  }
  return [element("dl", { class: "tiles" }, tiles)];
}
