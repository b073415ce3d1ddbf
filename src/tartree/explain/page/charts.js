// Charts about the whole model: confusion matrix or residuals, calibration, importances.

import { drawing, element } from "./elements.js";
import { countText, cutText, exactShareText, numberText, shareText } from "./numbers.js";

const MOST_CLASSES = 12;

/** Cards for all charts; `actions` are {onCell(truth, predicted), onRow(index)}. */
export function chartCards(report, target, actions) {
  const cards = [];
  if (report.quality && report.task === "classification") {
    cards.push(
      card(
        "Confusion matrix",
        "Number of rows by true and predicted class. Choose a number to see these rows below.",
        confusion(report, actions.onCell),
      ),
    );
    cards.push(
      card(
        "Calibration",
        calibrationText(report),
        calibration(report.quality.calibration, "predicted probability", "observed share"),
      ),
    );
  } else if (report.quality) {
    const entry = report.quality[target];
    const points = report.rows.numbers.length ? residuals(report, target, actions.onRow) : "The page holds no rows.";
    cards.push(
      card(
        "Predicted and true values",
        "Every point is a row; on the line, the prediction is exact. Choose a point to see the row below.",
        points,
      ),
    );
    if (entry.coverage.length) {
      cards.push(
        card(
          "Calibration of intervals",
          "Share of true values within each predicted interval; calibrated intervals are on the line.",
          calibration(entry.coverage, "nominal share", "observed share"),
        ),
      );
    }
  }
  if (report.importances.length) {
    cards.push(
      card(
        "Importance of the columns",
        "Share of each column in the reduction of the error by decisions and leaves; all sum to 100%.",
        importances(report),
      ),
    );
  }
  return cards;
}

function card(title, description, content) {
  return element(
    "div",
    { class: "card" },
    element("h3", {}, title),
    element("p", { class: "muted small" }, description),
    content,
  );
}

function calibrationText(report) {
  if (report.outputs.length === 2) {
    const name = report.outputs[1];
    return `Observed share of ${name} among rows with similar predicted probability; calibrated ones are on the line.`;
  }
  return "Share of correct predictions among rows with similar predicted probability; calibrated ones are on the line.";
}

function confusion(report, onCell) {
  const { matrix } = report.quality;
  const names = report.outputs;
  if (names.length > MOST_CLASSES) return confusionList(report, onCell);
  const head = element(
    "thead",
    {},
    element("tr", {}, element("td", {}), element("th", { colspan: names.length, class: "muted small" }, "predicted")),
    element(
      "tr",
      {},
      element("th", { class: "muted small corner" }, "true"),
      names.map((name) => element("th", { scope: "col", title: name }, cutText(name, 14))),
    ),
  );
  const body = matrix.map((row, truth) => {
    const total = Math.max(
      1,
      row.reduce((sum, count) => sum + count, 0),
    );
    return element(
      "tr",
      {},
      element("th", { scope: "row", title: names[truth] }, cutText(names[truth], 18)),
      row.map((count, predicted) => {
        const right = truth === predicted;
        const label = `${countText(count, "row")}: true ${names[truth]}, predicted ${names[predicted]}`;
        return element(
          "td",
          { class: right ? "cell good" : "cell", share: count / total },
          count
            ? element(
                "button",
                { type: "button", "aria-label": label, title: label, onclick: () => onCell(truth, predicted) },
                count.toLocaleString("en-US"),
              )
            : element("span", { class: "muted" }, "0"),
        );
      }),
    );
  });
  return element(
    "div",
    { class: "scroll" },
    element("table", { class: "confusion" }, head, element("tbody", {}, body)),
  );
}

function confusionList(report, onCell) {
  const { matrix } = report.quality;
  const result = matrix.flatMap((row, truth) => row.map((count, predicted) => ({ count, truth, predicted })));
  const wrong = result
    .filter(({ count, truth, predicted }) => count && truth !== predicted)
    .sort((a, b) => b.count - a.count);
  const name = (label) => report.outputs[label];
  return element(
    "div",
    {},
    element("p", {}, `${report.outputs.length} classes: the most frequent confusions.`),
    element(
      "ul",
      { class: "plain" },
      wrong
        .slice(0, 10)
        .map(({ count, truth, predicted }) =>
          element(
            "li",
            {},
            element(
              "button",
              { type: "button", class: "chip", onclick: () => onCell(truth, predicted) },
              String(count),
            ),
            ` ${name(truth)} predicted as ${name(predicted)}`,
          ),
        ),
    ),
  );
}

// A square plot from 0 to 1 with the line on which points should lie.
function calibration(points, across, up) {
  const size = 240;
  const left = 52;
  const top = 8;
  const x = (share) => left + share * size;
  const y = (share) => top + (1 - share) * size;
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const most = Math.max(...points.map(({ rows }) => rows));
  const line = points.map((point, index) => `${index ? "L" : "M"}${x(point.predicted)},${y(point.observed)}`).join("");
  const plot = drawing(
    "svg",
    {
      viewBox: `0 0 ${left + size + 16} ${top + size + 40}`,
      class: "plot",
      role: "img",
      "aria-label": "Calibration; the same as a table below",
    },
    ticks.map((tick) => [
      drawing("line", { class: "grid", x1: x(tick), y1: y(0), x2: x(tick), y2: y(1) }),
      drawing("line", { class: "grid", x1: x(0), y1: y(tick), x2: x(1), y2: y(tick) }),
      drawing("text", { class: "tick", x: x(tick), y: y(0) + 15, "text-anchor": "middle" }, `${100 * tick}%`),
      drawing("text", { class: "tick", x: x(0) - 5, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick}%`),
    ]),
    drawing("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    drawing("path", { class: "curve", d: line }),
    points.map((point) =>
      drawing(
        "circle",
        { class: "point", cx: x(point.predicted), cy: y(point.observed), r: 3 + 5 * Math.sqrt(point.rows / most) },
        drawing(
          "title",
          {},
          `${shareText(point.predicted)} predicted, ${shareText(point.observed)} observed, ${countText(point.rows, "row")}`,
        ),
      ),
    ),
    drawing("text", { class: "axis", x: x(0.5), y: y(0) + 32, "text-anchor": "middle" }, across),
    drawing(
      "text",
      { class: "axis", x: 0, y: 0, "text-anchor": "middle", transform: `translate(9,${y(0.5)}) rotate(-90)` },
      up,
    ),
  );
  const rows = points.map((point) =>
    element(
      "tr",
      {},
      [shareText(point.predicted), shareText(point.observed), point.rows.toLocaleString("en-US")].map((text) =>
        element("td", {}, text),
      ),
    ),
  );
  const heads = [across, up, "rows"].map((text) => element("th", { scope: "col" }, text));
  return element(
    "div",
    {},
    plot,
    element(
      "details",
      {},
      element("summary", {}, "As a table"),
      element(
        "table",
        { class: "numbers" },
        element("thead", {}, element("tr", {}, heads)),
        element("tbody", {}, rows),
      ),
    ),
  );
}

function residuals(report, target, onRow) {
  const { predicted, truth } = report.rows;
  const xs = predicted.map((row) => row[target]);
  const ys = truth.map((row) => row[target]);
  const low = [...xs, ...ys].reduce((least, value) => Math.min(least, value), Infinity);
  const high = [...xs, ...ys].reduce((most, value) => Math.max(most, value), -Infinity);
  const size = 240;
  const left = 58;
  const top = 8;
  const index = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const x = (value) => left + index(value) * size;
  const y = (value) => top + (1 - index(value)) * size;
  const ticks = niceTicks(low, high);
  return drawing(
    "svg",
    {
      viewBox: `0 0 ${left + size + 16} ${top + size + 40}`,
      class: "plot",
      role: "img",
      "aria-label": `Predicted against true values of ${countText(xs.length, "row")}`,
    },
    ticks.map((tick) => [
      drawing("line", { class: "grid", x1: x(tick), y1: top, x2: x(tick), y2: top + size }),
      drawing("line", { class: "grid", x1: left, y1: y(tick), x2: left + size, y2: y(tick) }),
      drawing("text", { class: "tick", x: x(tick), y: top + size + 15, "text-anchor": "middle" }, numberText(tick)),
      drawing("text", { class: "tick", x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, numberText(tick)),
    ]),
    drawing("line", { class: "ideal", x1: left, y1: top + size, x2: left + size, y2: top }),
    xs.map((value, row) =>
      drawing(
        "circle",
        {
          class: "dot",
          cx: Math.round(10 * x(value)) / 10,
          cy: Math.round(10 * y(ys[row])) / 10,
          r: 3,
          onclick: () => onRow(row),
        },
        drawing(
          "title",
          {},
          `Row ${report.rows.numbers[row] + 1}: predicted ${numberText(value)}, true ${numberText(ys[row])}`,
        ),
      ),
    ),
    drawing("text", { class: "axis", x: left + size / 2, y: top + size + 32, "text-anchor": "middle" }, "predicted"),
    drawing(
      "text",
      { class: "axis", x: 0, y: 0, "text-anchor": "middle", transform: `translate(9,${top + size / 2}) rotate(-90)` },
      "true",
    ),
  );
}

/** A few round numbers between two ends. */
export function niceTicks(low, high) {
  if (!(high > low)) return [low];
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step)
    ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

function importances(report) {
  const order = report.importances.map((share, column) => ({ share, column })).sort((a, b) => b.share - a.share);
  const largest = Math.max(order[0].share, 1e-12);
  const shown = order.filter(({ share }) => share > 0).slice(0, 12);
  const rest = order.filter(({ share }) => share > 0).length - shown.length;
  const bars = shown.map(({ share, column }) => {
    const { name } = report.columns[column];
    return element(
      "li",
      {},
      element("span", { class: "bar-name", title: name }, name),
      element("span", { class: "bar", share: share / largest, colour: "var(--accent)", "aria-hidden": "true" }),
      element("span", { class: "bar-share" }, exactShareText(share)),
    );
  });
  if (!shown.length) return element("p", {}, "No column changes what the model predicts.");
  if (rest > 0) bars.push(element("li", { class: "more muted small" }, `and ${countText(rest, "other column")}`));
  return element("ul", { class: "bars wide-names" }, bars);
}
