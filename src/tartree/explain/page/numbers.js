// Numbers, shares and dates as text, and text back as values.

const DAY = 86400;

/** A number with four digits, more where it is whole and short. */
export function numberText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return withMinus(value.toLocaleString("en-US"));
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return withMinus(value.toExponential(2));
  return withMinus(Number(value.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 8 }));
}

/** A number with its sign, for a part of a sum. */
export function signedText(value) {
  return value >= 0 ? `+${numberText(value)}` : numberText(value);
}

function withMinus(text) {
  return text.replace("-", "−");
}

/** A share as per cent; what is small but not nothing is said to be so. */
export function shareText(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "<0.1%";
  if (percent < 100 && percent > 99.9) return ">99.9%";
  const digits = percent < 1 || percent > 99 ? 1 : 0;
  return `${Number(percent.toFixed(digits))}%`;
}

/** A change of a probability, with four decimals. */
export function changeText(change) {
  return change > 0 && change < 0.0001 ? "<0.0001" : change.toFixed(4);
}

/** A count with its noun: "1 row", "1,200 rows". */
export function countText(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`;
}

/** Text cut to so many letters. */
export function cutText(text, letters) {
  const points = [...text];
  return points.length <= letters ? text : `${points.slice(0, Math.max(1, letters - 1)).join("")}…`;
}

/** A value of a column as a reader would write it. */
export function valueText(column, value) {
  if (value === null || value === undefined) return "missing";
  if (column.kind === "boolean") return value ? "true" : "false";
  if (column.kind !== "numeric") return String(value);
  if (column.unit === "number") return numberText(value);
  if (column.unit === "duration") return `${numberText(value)} s`;
  return inputText(column, value).replace("T", " ");
}

/** A value as an input of the right type holds it. */
export function inputText(column, value) {
  if (value === null || value === undefined) return "";
  if (column.kind !== "numeric" || column.unit === "number" || column.unit === "duration") return String(value);
  if (column.unit === "time")
    return isoText(value)
      .slice(11, 23)
      .replace(/\.?0+$/, (zeros) => (zeros[0] === "." ? "" : zeros));
  const text = isoText(value);
  if (column.unit === "date" && value % DAY === 0) return text.slice(0, 10);
  return text.slice(0, value % 1 ? 23 : 19);
}

function isoText(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** The value of an input's text: a number, null for a gap, undefined where it is neither. */
export function parseValue(column, text) {
  const trimmed = text.trim();
  if (!trimmed) return null;
  if (column.unit === "number" || column.unit === "duration") {
    const number = Number(trimmed.replace("−", "-").replace(/^([+-]?\d*),(\d+)$/, "$1.$2"));
    return Number.isFinite(number) ? number : undefined;
  }
  const iso = column.unit === "time" ? `1970-01-01T${trimmed}` : trimmed.replace(" ", "T");
  const zoned = /T.*([Z]|[+-]\d\d:?\d\d)$/.test(iso) || !iso.includes("T") ? iso : `${iso}Z`;
  const milliseconds = Date.parse(zoned);
  return Number.isNaN(milliseconds) ? undefined : milliseconds / 1000;
}
