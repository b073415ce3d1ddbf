// What columns add to a sum: small charts of curves and levels in original units, above the density of the rows.

import { niceTicks } from "./charts.js";
import { classColour, drawing, element } from "./elements.js";
import { cutText, numberText, quantityOf, signedText, valueText } from "./numbers.js";

const WIDTH = 232;
const HEIGHT = 136;
const EDGE = { left: 36, right: 6, top: 8, bottom: 18 };
const DENSITY = 22; // pixels below the curves
const BINS = 28;
const MOST_LEVELS = 7;
const MOST_CHARTS = 12;
const TAIL = 0.005; // of the rows, on both sides, that an axis leaves out
const CODE_SHARE = 0.1; // of the rows that codes such as 999999 have at most
const CODE_DISTANCE = 10; // of codes from other numbers, in widths of those

/** The sum of effects of one column: {column, kind, points, levels, missing, strength}. */
export function effectSum(effects) {
  const [first] = effects;
  const xs = [...new Set(effects.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const curves = effects.filter(({ points }) => points.length);
  const labels = [...new Set(effects.flatMap(({ levels }) => levels.map(([label]) => label)))];
  const amount = ({ levels }, label) => (levels.find(([other]) => other === label) || [label, 0])[1];
  const total = (amounts) => amounts.reduce((sum, part) => sum + part, 0);
  const missing = effects.map((effect) => effect.missing).filter((part) => part !== null);
  return {
    ...first,
    points: xs.map((x) => [x, total(curves.map(({ points }) => curveAt(points, x)))]),
    levels: labels.map((label) => [label, total(effects.map((effect) => amount(effect, label)))]),
    missing: missing.length ? total(missing) : null,
    strength: Math.hypot(...effects.map(({ strength }) => strength)),
  };
}

/** What a curve adds at a value; beyond its ends, what it adds there. */
export function curveAt(points, x) {
  if (x <= points[0][0]) return points[0][1];
  const after = points.findIndex(([end]) => end >= x);
  if (after < 0) return points[points.length - 1][1];
  const [[x0, y0], [x1, y1]] = [points[after - 1], points[after]];
  return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
}

/** What the nodes of a path add together to a function: {constant, effects}, the strongest first. */
export function pathSum(nodes, path, index) {
  const byColumn = new Map();
  let constant = 0;
  path.forEach((number) => {
    const entry = nodes[number][index];
    constant += entry.constant;
    entry.effects.forEach((effect) => byColumn.set(effect.column, [...(byColumn.get(effect.column) || []), effect]));
  });
  const effects = [...byColumn.values()].map(effectSum).sort((a, b) => b.strength - a.strength);
  return { constant, effects };
}

/** Charts of the model for all rows, or null if leaves have nothing in common. */
export function sharedCharts(scene) {
  const { report, target } = scene;
  if (!scene.corrections) return null;
  const [root] = scene.corrections.nodes;
  const functions = report.task === "regression" ? [root[target]] : root;
  const colours = functions.map((_, index) => (functions.length > 1 ? classColour(index) : "var(--accent)"));
  const strength = new Map();
  functions.forEach(({ effects }) =>
    effects.forEach((effect) =>
      strength.set(effect.column, Math.max(effect.strength, strength.get(effect.column) || 0)),
    ),
  );
  const columns = [...strength.keys()].sort((a, b) => strength.get(b) - strength.get(a));
  const charts = columns.slice(0, MOST_CHARTS).map((column) => ({
    column,
    lines: functions
      .map(({ effects }, index) => ({ effect: effects.find((e) => e.column === column), colour: colours[index] }))
      .filter(({ effect }) => effect),
  }));
  const total = Math.max(columns.length, ...functions.map(({ nEffects }) => nEffects));
  const constants = functions.map(({ name, constant }) => `${name} ${numberText(constant)}`).join(", ");
  const rest = total - charts.length;
  return [
    element(
      "p",
      { class: "words" },
      `Each chart is what a column adds to the ${functions.length > 1 ? "logits" : sumName(report, functions[0].name)}, `,
      "in its own units; the grey bars are the rows. Leaves change some of these: choose a node of the tree to see how. ",
      `The sums start at: ${constants}.`,
    ),
    functions.length > 1
      ? element(
          "p",
          { class: "effect-keys" },
          report.outputs.map((name, index) => element("span", { colour: classColour(index) }, name)),
        )
      : null,
    effectCharts(scene, charts),
    rest > 0 ? element("p", { class: "muted small" }, `and ${rest} weaker column${rest > 1 ? "s" : ""}`) : null,
  ].filter(Boolean);
}

/** What a node and those above it change of the model for all rows. */
export function changeParts(scene, node) {
  const { corrections, report, target } = scene;
  const [root] = corrections.nodes;
  const path = corrections.paths[node.number].filter((number) => number !== 0);
  const chosen = report.task === "regression" ? [target] : root.map((_, index) => index);
  const sums = chosen.map((index) => pathSum(corrections.nodes, path, index));
  const shift = sums
    .map(({ constant }, k) => [root[chosen[k]].name, constant])
    .filter(([, constant]) => Math.abs(constant) > 0);
  if (!shift.length && sums.every(({ effects }) => !effects.length)) {
    return node.kind === "leaf" ? [element("p", {}, "Predicts as the model for all rows.")] : [];
  }
  const parts = chosen.map((index, k) => {
    const { effects } = sums[k];
    const charts = effects.slice(0, MOST_CHARTS / 2).map((change) => {
      const base = root[index].effects.find(({ column }) => column === change.column);
      const here = base ? effectSum([base, change]) : change;
      const colour = chosen.length > 1 ? classColour(index) : "var(--accent)";
      const lines = [{ effect: here, colour }];
      if (base) lines.unshift({ effect: base, colour: "var(--muted)", isBase: true });
      return { column: change.column, lines };
    });
    if (!charts.length) return null;
    const rest = effects.length - charts.length;
    const content = [
      effectCharts(scene, charts),
      rest > 0 ? element("p", { class: "muted small" }, `and ${rest} smaller change${rest > 1 ? "s" : ""}`) : null,
    ];
    const { name } = root[index];
    return chosen.length > 1
      ? element("details", { open: k === 0 }, element("summary", {}, name), content)
      : element("div", {}, content);
  });
  return [
    element("p", { class: "label" }, "Changes of the model for all rows"),
    element("p", { class: "muted small" }, "Grey lines are the model for all rows, coloured ones that of the rows here."),
    ...parts.filter(Boolean),
    ...shift.map(([name, constant]) =>
      element("p", { class: "muted small" }, `Constant of the ${sumName(report, name)}: ${signedText(constant)}`),
    ),
  ];
}

/** Charts of the columns of a decision, and where the sum parts the rows. */
export function decisionCharts(scene, condition) {
  const [{ effects, encodedBias, nEffects }] = condition.functions;
  const line = effects.length === 1 ? -encodedBias : null;
  const charts = effects.map((effect) => ({ column: effect.column, lines: [{ effect, colour: "var(--accent)" }], line }));
  const rest = nEffects - effects.length;
  const isCurve = line !== null && effects[0].kind === "curve";
  return [
    isCurve ? element("p", { class: "muted small" }, "Upper branch where the curve is above the dashed line.") : null,
    effectCharts(scene, charts),
    rest > 0 ? element("p", { class: "muted small" }, `and ${rest} weaker column${rest > 1 ? "s" : ""}`) : null,
  ].filter(Boolean);
}

function sumName(report, name) {
  return report.models[0].output.hasLinearMean ? `prediction of ${name}` : name;
}

// Charts with one scale for what columns add, so that they compare.
function effectCharts(scene, charts) {
  const prepared = charts.map((entry) => ({ ...entry, axis: axisOf(scene.report, entry) }));
  const amounts = prepared.flatMap(({ lines, axis, line }) => [
    0,
    ...(line === null || line === undefined ? [] : [line]),
    ...lines.flatMap(({ effect }) => amountsOf(effect, axis)),
  ]);
  let [low, high] = [Math.min(...amounts), Math.max(...amounts)];
  if (!(high > low)) [low, high] = [-1, 1];
  return element(
    "div",
    { class: "effects" },
    prepared.map((entry) => effectChart(scene, entry, [low, high])),
  );
}

function amountsOf(effect, axis) {
  const parts = effect.levels.map(([, part]) => part);
  if (effect.missing !== null) parts.push(effect.missing);
  if (effect.points.length) {
    const inside = effect.points.filter(([x]) => x > axis.low && x < axis.high).map(([, y]) => y);
    parts.push(...inside, curveAt(effect.points, axis.low), curveAt(effect.points, axis.high));
  }
  return parts;
}

function axisOf(report, { column, lines }) {
  const values = report.rows.columns[column] || [];
  if (lines[0].effect.kind === "levels") return levelAxis(report, column, lines, values);
  const [first] = lines.map(({ effect }) => effect).filter(({ points }) => points.length);
  const numbers = values.filter((value) => typeof value === "number").sort((a, b) => a - b);
  let [low, high] = first ? [first.points[0][0], first.points[first.points.length - 1][0]] : [0, 1];
  if (numbers.length) {
    const few = Math.floor(CODE_SHARE * numbers.length);
    const [start, end] = [numbers[few], numbers[numbers.length - 1 - few]];
    const reach = CODE_DISTANCE * (end - start);
    const usual = reach > 0 ? numbers.filter((value) => value >= start - reach && value <= end + reach) : numbers;
    low = usual[Math.floor(TAIL * (usual.length - 1))];
    high = usual[Math.ceil((1 - TAIL) * (usual.length - 1))];
  }
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const counts = new Array(BINS).fill(0);
  numbers.forEach((value) => {
    if (value < low || value > high) return;
    counts[Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS))] += 1;
  });
  return { low, high, counts, nMissing: values.filter((value) => value === null).length };
}

function levelAxis(report, column, lines, values) {
  const known = report.columns[column].levels;
  const [{ effect }] = lines;
  const levels = effect.levels.map(([label], index) => ({
    label,
    index,
    isMissing: false,
    rows: values.filter((value) => value !== null && (index < known.length ? value === known[index] : !known.includes(value)))
      .length,
  }));
  const size = ({ label }) =>
    Math.max(...lines.map(({ effect: other }) => Math.abs((other.levels.find(([l]) => l === label) || [label, 0])[1])));
  const kept = [...levels].sort((a, b) => size(b) - size(a)).slice(0, MOST_LEVELS);
  const shown = levels.filter((level) => kept.includes(level));
  if (lines.some(({ effect: other }) => other.missing !== null)) {
    const rows = values.filter((value) => value === null).length;
    shown.push({ label: "missing", index: -1, isMissing: true, rows });
  }
  return { low: 0, high: 1, levels: shown, hidden: levels.length - kept.length };
}

function effectChart(scene, { column, lines, axis, line }, [low, high]) {
  const { report } = scene;
  const entry = report.columns[column];
  const bottom = HEIGHT - EDGE.bottom;
  const y = (part) => EDGE.top + ((high - part) / (high - low)) * (bottom - DENSITY - EDGE.top);
  const ticks = niceTicks(low, high).filter((tick) => tick >= low && tick <= high);
  const grid = ticks.map((tick) => [
    drawing("line", { class: tick === 0 ? "zero" : "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(tick), y2: y(tick) }),
    drawing("text", { class: "tick", x: EDGE.left - 4, y: y(tick) + 4, "text-anchor": "end" }, numberText(tick)),
  ]);
  const limit =
    line === null || line === undefined
      ? null
      : drawing("line", { class: "limit", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(line), y2: y(line) });
  const marks = axis.levels
    ? levelMarks(scene, column, lines, axis, y, bottom)
    : curveMarks(scene, column, lines, axis, y, bottom);
  const svg = drawing(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot effect-plot", role: "img", "aria-label": spoken(report, column, lines) },
    grid,
    marks,
    limit,
  );
  const more = axis.hidden > 0 ? ` (and ${axis.hidden} more level${axis.hidden > 1 ? "s" : ""})` : "";
  return element(
    "figure",
    { class: "effect" },
    element("figcaption", { title: entry.name }, entry.name, element("span", { class: "muted" }, more)),
    svg,
  );
}

function curveMarks(scene, column, lines, axis, y, bottom) {
  const { report, row } = scene;
  const entry = report.columns[column];
  const hasMissing = lines.some(({ effect }) => effect.missing !== null);
  const right = WIDTH - EDGE.right - (hasMissing ? 42 : 0);
  const x = (value) => EDGE.left + ((value - axis.low) / (axis.high - axis.low)) * (right - EDGE.left);
  const at = WIDTH - EDGE.right - 18; // of missing values
  const most = Math.max(1, ...axis.counts);
  const bar = (left, width, count) => {
    const height = DENSITY * Math.min(1, count / most);
    return drawing("rect", { class: "rows", x: left, width, y: bottom - height, height });
  };
  const width = (right - EDGE.left) / BINS;
  const ticks = quantityOf(entry).form === "number" ? niceTicks(axis.low, axis.high) : [axis.low, axis.high];
  const labels = ticks.filter((tick) => tick >= axis.low && tick <= axis.high);
  const few = labels.length > 4 ? labels.filter((_, index) => index % 2 === 0) : labels;
  const anchor = (tick) => (x(tick) > right - 16 ? "end" : x(tick) < EDGE.left + 12 ? "start" : "middle");
  return [
    axis.counts.map((count, index) => (count ? bar(EDGE.left + index * width + 0.5, width - 1, count) : null)),
    hasMissing && axis.nMissing ? bar(at - 6, 12, axis.nMissing) : null,
    drawing("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: bottom, y2: bottom }),
    few.map((tick) =>
      drawing(
        "text",
        { class: "tick", x: x(tick), y: HEIGHT - 5, "text-anchor": anchor(tick) },
        valueText(entry, quantityOf(entry).isDay ? Math.round(tick / 86400) * 86400 : tick),
      ),
    ),
    hasMissing ? drawing("text", { class: "tick", x: at, y: HEIGHT - 5, "text-anchor": "middle" }, "missing") : null,
    lines.map(({ effect, colour, isBase }) => {
      const inside = effect.points.map(([value]) => value).filter((value) => value > axis.low && value < axis.high);
      const values = effect.points.length ? [axis.low, ...inside, axis.high] : [];
      const path = values.map((value, index) => `${index ? "L" : "M"}${x(value).toFixed(1)},${y(curveAt(effect.points, value)).toFixed(1)}`);
      return [
        path.length ? drawing("path", { class: `effect-line${isBase ? " base" : ""}`, d: path.join(""), stroke: colour }) : null,
        effect.missing === null ? null : drawing("circle", { cx: at, cy: y(effect.missing), r: 3.5, fill: colour }),
      ];
    }),
    row ? rowMark(row.values[column], lines[lines.length - 1], axis, x, y, at) : null,
  ];
}

// Where the chosen row is on the last line.
function rowMark(value, { effect }, axis, x, y, at) {
  if (value === null || value === undefined) {
    return effect.missing === null ? null : drawing("circle", { class: "here", cx: at, cy: y(effect.missing), r: 5.5 });
  }
  if (typeof value !== "number" || !effect.points.length) return null;
  const inside = Math.min(axis.high, Math.max(axis.low, value));
  return drawing("circle", { class: "here", cx: x(inside), cy: y(curveAt(effect.points, inside)), r: 5.5 });
}

function levelMarks({ report, row }, column, lines, axis, y, bottom) {
  const { levels } = axis;
  const slot = (WIDTH - EDGE.left - EDGE.right) / Math.max(1, levels.length);
  const most = Math.max(1, ...levels.map(({ rows }) => rows));
  const each = (slot * 0.76) / lines.length;
  const known = report.columns[column].levels;
  const value = row ? row.values[column] : undefined;
  const letters = Math.max(2, Math.floor(slot / 5.4));
  return levels.map((level, place) => {
    const left = EDGE.left + place * slot + slot * 0.12;
    const height = (DENSITY * level.rows) / most;
    const isHere =
      row && (level.isMissing ? value === null : level.index < known.length ? value === known[level.index] : value !== null && !known.includes(value));
    return [
      drawing("rect", { class: "rows", x: left, width: slot * 0.76, y: bottom - height, height }),
      lines.map(({ effect, colour, isBase }, index) => {
        const part = level.isMissing ? effect.missing || 0 : (effect.levels.find(([label]) => label === level.label) || [0, 0])[1];
        return drawing(
          "rect",
          {
            class: isBase ? "level base" : "level",
            x: left + index * each,
            width: each,
            y: Math.min(y(0), y(part)),
            height: Math.abs(y(part) - y(0)),
            fill: colour,
          },
          drawing("title", {}, `${level.label}: ${signedText(part)}`),
        );
      }),
      drawing(
        "text",
        { class: isHere ? "tick here-text" : "tick", x: left + slot * 0.38, y: HEIGHT - 5, "text-anchor": "middle" },
        cutText(level.label, letters),
        drawing("title", {}, level.label),
      ),
    ];
  });
}

function spoken(report, column, lines) {
  const entry = report.columns[column];
  const { effect } = lines[lines.length - 1];
  const parts = effect.points.map(([x, part]) => `${signedText(part)} at ${valueText(entry, x)}`);
  parts.push(...effect.levels.map(([label, part]) => `${signedText(part)} for ${label}`));
  if (effect.missing !== null) parts.push(`${signedText(effect.missing)} for a missing value`);
  return `${entry.name}: ${parts.join(", ")}`;
}
