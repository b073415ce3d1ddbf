// Choosing a row of the data, and typing its values.

import { element, show } from "./elements.js";
import { inputText, quantityOf, rangeText, readNumber, readValue, valueText } from "./numbers.js";

const OTHER = "(another level)";

/**
 * Fields for the values of a row; `onChange(column, value)` is called when one is changed to what can be read.
 *
 * Gives {show(values)}, which fills the fields in.
 */
export function makeForm(form, report, onChange) {
  const fields = report.columns.map((column, index) =>
    column.used ? makeField(column, index, (value) => onChange(index, value)) : null,
  );
  show(
    form,
    fields.filter(Boolean).map((field) => field.element),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  return { show: (values) => fields.forEach((field, index) => field && field.show(values[index])) };
}

function makeField(column, index, onChange) {
  const id = `value-${index}`;
  const {
    control,
    show: fill,
    note,
  } = column.kind === "numeric" ? numberControl(column, id, onChange) : levelControl(column, id, onChange);
  const hint = column.kind === "numeric" ? rangeText(column) : "";
  const range = element("span", { class: "muted small", id: `${id}-range` }, hint);
  control.setAttribute("aria-describedby", `${id}-range`);
  return {
    element: element(
      "div",
      { class: "field" },
      element("label", { for: id, title: column.name }, column.name),
      control,
      range,
      note,
    ),
    show: fill,
  };
}

function numberControl(column, id, onChange) {
  const type = quantityOf(column).control;
  const note = element("span", { class: "problem small", role: "alert" });
  const control = element("input", {
    id,
    type,
    inputmode: type === "text" ? "decimal" : null,
    step: type === "text" ? null : "any",
    placeholder: "missing",
  });
  let used = null; // the value that the prediction is made from
  const tell = (reading, problem, isInvalid = false) => {
    note.className = problem ? "problem small" : "muted small";
    show(note, [reading, problem].filter(Boolean).join("; "));
    control.setAttribute("aria-invalid", String(isInvalid));
  };
  const rangeProblem = (value) =>
    value !== null && (value < column.low || value > column.high) ? "outside the data's range" : "";
  control.addEventListener("input", () => {
    const { value, isDoubtful } = readValue(column, control.value);
    if (value === undefined || control.validity.badInput) {
      const kept = used === null ? "a missing value" : inputText(column, used);
      tell("", `not a ${column.unit}: the prediction still uses ${kept}`, true);
      return;
    }
    used = value;
    tell(isDoubtful ? `read as ${inputText(column, value)}` : "", rangeProblem(value));
    onChange(value);
  });
  const fill = (value) => {
    if (document.activeElement === control) return; // not while the reader types
    used = value === undefined ? null : value;
    control.value = inputText(column, value);
    tell("", rangeProblem(used));
  };
  return { control, show: fill, note };
}

function levelControl(column, id, onChange) {
  const choices = [null, ...column.levels, ...(column.kind === "boolean" ? [] : [OTHER])];
  const option = (value, index) =>
    element(
      "option",
      { value: index },
      value === null ? "missing" : value === OTHER ? OTHER : valueText(column, value),
    );
  const control = element("select", { id }, choices.map(option));
  let unseen = OTHER;
  control.addEventListener("change", () => {
    const value = choices[Number(control.value)];
    onChange(value === OTHER ? unseen : value);
  });
  const fill = (value) => {
    const index = choices.indexOf(value === undefined ? null : value);
    if (index < 0) unseen = value;
    control.value = String(index < 0 ? choices.indexOf(OTHER) : index);
    control.options[control.options.length - 1].textContent =
      column.kind === "boolean" ? "false" : index < 0 && value !== OTHER ? `${value} (another level)` : OTHER;
  };
  return { control, show: fill, note: null };
}

/**
 * Buttons and a number to go through the rows; `onRow(index)` is called with the index among the rows of the page.
 *
 * Gives {show(index, edited), filter(test, text)}: a filter limits the rows, such as to those predicted wrongly.
 */
export function makeRowChoice(container, report, onRow) {
  const { numbers, predicted, truth } = report.rows;
  const all = numbers.map((_, index) => index);
  let filters = [{ text: `All ${numbers.length.toLocaleString("en-US")} rows`, rows: all }];
  if (report.task === "classification" && truth) {
    const right = all.filter((index) => predicted[index] === truth[index]);
    const wrong = all.filter((index) => predicted[index] !== truth[index]);
    filters.push(
      { text: `Predicted wrongly (${wrong.length})`, rows: wrong },
      { text: `Predicted rightly (${right.length})`, rows: right },
    );
  }
  filters = filters.filter(({ rows }) => rows.length);
  let rows = all;
  let current = -1;
  const choice = element("select", { id: "row-filter", "aria-label": "Which rows" });
  const number = element("input", {
    id: "row-number",
    type: "text",
    inputmode: "numeric",
    "aria-label": "Number of the row",
    placeholder: "row",
  });
  const go = (step) => {
    if (!rows.length) return;
    const at = rows.findIndex((index) => index >= current);
    const here = rows[at] === current ? at : step > 0 ? at - 1 : at;
    const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : (here + step + rows.length) % rows.length;
    onRow(rows[next]);
  };
  const listFilters = () => {
    show(
      choice,
      filters.map(({ text }, index) => element("option", { value: index }, text)),
    );
    choice.hidden = filters.length < 2;
  };
  choice.addEventListener("change", () => {
    ({ rows } = filters[Number(choice.value)]);
    onRow(rows.includes(current) ? current : rows[0]);
  });
  number.addEventListener("change", () => {
    const index = numbers.indexOf((readNumber(number.value)?.value ?? 0) - 1);
    if (index >= 0) onRow(index);
    else show(state, "no such row on this page");
    number.setAttribute("aria-invalid", String(index < 0));
  });
  const button = (text, label, action) =>
    element("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
  const state = element("span", { class: "muted small", id: "row-state" });
  listFilters();
  show(
    container,
    choice,
    element(
      "div",
      { class: "row-tools" },
      button("◀", "Previous row", () => go(-1)),
      number,
      button("▶", "Next row", () => go(1)),
      state,
    ),
    element(
      "div",
      { class: "row-tools" },
      element("button", { type: "button", id: "row-typical", onclick: () => onRow(-1) }, "Typical values"),
      element("button", { type: "button", id: "row-none", onclick: () => onRow(null) }, "All rows"),
    ),
  );
  return {
    show(index, edited) {
      current = index === null ? -1 : index;
      number.value = index === null || index < 0 ? "" : String(numbers[index] + 1);
      number.setAttribute("aria-invalid", "false");
      const from = index === null ? "" : index < 0 ? "typical values" : `of ${report.nRows.toLocaleString("en-US")}`;
      show(state, `${from}${edited ? ", changed" : ""}`);
    },
    filter(test, text) {
      const result = all.filter(test);
      if (!result.length) return;
      filters = [
        ...filters.filter((entry) => !entry.isCell),
        { text: `${text} (${result.length})`, rows: result, isCell: true },
      ];
      rows = result;
      listFilters();
      choice.value = String(filters.length - 1);
      onRow(rows[0]);
    },
  };
}

/** The values that a reader starts from: medians and most frequent levels. */
export function typicalValues(report) {
  return report.columns.map((column) => (column.typical === undefined ? null : column.typical));
}
