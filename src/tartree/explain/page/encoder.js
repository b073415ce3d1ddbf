// A row of the table as the numbers that the model reads: what TableEncoder does, in the browser.
//
// A row is a list with one entry a column: a number (dates and times in seconds), true or false, a level, or null for a
// missing value.

const CLIP = 1e6;
const HUGE = 1e300;
const SHRINK = 2 ** -40;

/** Encoded numbers of a row, rounded to single precision as the encoder does. */
export function encodeRow(columns, features, row) {
  return Float64Array.from(features, (feature) => {
    const column = columns[feature.column];
    return Math.fround(ENCODERS[feature.kind](feature, column, cleanValue(column, row[feature.column])));
  });
}

// Values that a column of booleans or numbers cannot hold are missing.
function cleanValue(column, value) {
  if (value === undefined || Number.isNaN(value)) return null;
  if (column.kind === "boolean" && typeof value !== "boolean") return null;
  return value;
}

const ENCODERS = {
  value: (feature, column, value) => scaleValue(feature, value === null ? feature.fill : value),
  bin(feature, column, value) {
    const [start, end, offset] = feature.bin;
    const encoded = Math.fround(scaleValue(feature, value === null ? feature.fill : value));
    const height = (encoded - start) * (2 / (end - start));
    return Math.min(Math.max(height, 0), 2) - offset;
  },
  level(feature, column, value) {
    if (value === null && !column.gaps && feature.fill !== null) return feature.fill ? 1 : 0;
    return value === feature.level ? 1 : 0;
  },
  other(feature, column, value) {
    if (value === null) return column.gaps ? 0 : 1;
    return column.levels.includes(value) ? 0 : 1;
  },
  missing: (feature, column, value) => (value === null ? 1 : 0),
};

/** A number in original units as the model reads it: standardised, or through the knots of a quantile map. */
export function scaleValue({ center, scale, knots, heights, ends: seen, reach }, value) {
  const ends = knots.length ? [knots[0], knots[knots.length - 1]] : [center, scale];
  const shrink = Math.max(...ends.map(Math.abs)) > HUGE ? SHRINK : 1;
  if (!knots.length) {
    const encoded = (value * shrink - center * shrink) / (scale * shrink);
    const clipped = Math.min(Math.max(encoded, -CLIP), CLIP);
    return seen ? limit(clipped, seen, reach) : clipped;
  }
  return interpolate(value * shrink, shrink === 1 ? knots : knots.map((knot) => knot * shrink), heights);
}

/** An encoded value; beyond the ends of what was seen in training it is limited smoothly. */
function limit(encoded, [bottom, top], reach) {
  const inside = Math.min(Math.max(encoded, bottom), top);
  const beyond = Math.abs(encoded - inside);
  return beyond > 0 ? inside + Math.sign(encoded - inside) * (beyond / (1 + beyond / reach)) : encoded;
}

/** The value in original units that is read as 0: the mean, or the median of a quantile map. */
export function middleValue({ center, knots, heights }) {
  return knots.length ? interpolate(0, heights, knots) : center;
}

/** A piecewise linear map through rising knots, constant beyond the ends. */
export function interpolate(value, knots, heights) {
  const last = knots.length - 1;
  if (value <= knots[0]) return heights[0];
  if (value >= knots[last]) return heights[last];
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= value) low = middle;
    else high = middle;
  }
  const slope = (heights[high] - heights[low]) / (knots[high] - knots[low]);
  return heights[low] + slope * (value - knots[low]);
}
