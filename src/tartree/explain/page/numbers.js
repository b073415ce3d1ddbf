// Numbers, shares and dates as text, and text back as values. Whatever is written here, `parseValue` reads as the number
// that is shown.

const DAY = 86400;

/** How the numbers of a column are read and written: what its `Quantity` says, or plain numbers. */
export function quantityOf(column) {
  return column.quantity || { form: "number", control: "text", noun: "unit", suffix: "" };
}

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

const EXPONENT = "(?:[eE][+-]?\\d+)?";
const SPACES = "[ '’\\u00a0\\u2009\\u202f]"; // and apostrophes, between groups of three digits

// Forms of a number without its sign: which marks to take out, so that what is left is the decimal point or comma, and
// whether somebody could mean another number. The first that fits counts. What is ambiguous is read as numbers are
// written here: a comma between groups of three digits, a point before decimals.
const FORMS = [
  { form: `[1-9]\\d{0,2}\\.\\d{3}`, isDoubtful: true }, // 4.500
  { form: `(?:\\d+\\.?\\d*|\\.\\d+)${EXPONENT}` }, // 4500, 4500.5, 1e-7
  { form: `[1-9]\\d{0,2}(?:,\\d{3})+(?:\\.\\d*)?${EXPONENT}`, marks: ",", isDoubtful: true }, // 4,500
  { form: `[1-9]\\d{0,2}(?:${SPACES}\\d{3})+(?:[.,]\\d+)?`, marks: SPACES, isDoubtful: true }, // 4 500,5
  { form: `[1-9]\\d{0,2}(?:\\.\\d{3})+,\\d+`, marks: "\\.", isDoubtful: true }, // 1.234,5
  { form: `[1-9]\\d{0,2}(?:\\.\\d{3}){2,}`, marks: "\\.", isDoubtful: true }, // 1.234.567
  { form: `\\d*,\\d+`, isDoubtful: true }, // 4,5
].map((entry) => ({ ...entry, form: new RegExp(`^${entry.form}$`) }));

/**
 * A number as people write it: {value, isDoubtful}, or null where it is none.
 *
 * `isDoubtful` says that a mark had to be read as one between groups or before decimals: the reader is then shown how.
 */
export function readNumber(text) {
  const [, sign, digits] = /^([+-]?)\s*(.*)$/s.exec(text.trim().replace(/−/g, "-"));
  const result = FORMS.find(({ form }) => form.test(digits));
  if (!result) return null;
  const plain = (result.marks ? digits.replace(new RegExp(result.marks, "g"), "") : digits).replace(",", ".");
  const value = Number(`${sign}${plain}`);
  return Number.isFinite(value) ? { value, isDoubtful: Boolean(result.isDoubtful) } : null;
}

/** A share as per cent; small shares other than 0 are "<0.1%". */
export function shareText(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "<0.1%";
  if (percent < 100 && percent > 99.9) return ">99.9%";
  const digits = percent < 1 || percent > 99 ? 1 : 0;
  return `${Number(percent.toFixed(digits))}%`;
}

/** A share as per cent with one decimal; 100.0% is all, and 0.0% nothing. */
export function exactShareText(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share < 1 && share >= 0.9995) return ">99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

/** A score with three decimals, of which 1 is the best: 1.000 is perfect. */
export function scoreText(score) {
  return score < 1 && score >= 0.9995 ? ">0.999" : withMinus(score.toFixed(3));
}

/** A change of a probability with four decimals, rounded up, as an upper bound. */
export function changeText(change) {
  if (change > 0 && change < 0.0001) return "<0.0001";
  const near = Number(change.toFixed(4));
  return (near < change ? near + 0.0001 : near).toFixed(4);
}

/** A number with four digits, not below it, for a bound. */
export function boundText(value) {
  return plainText(roundedTo(value, 4, Math.ceil), 4);
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
  const { form, suffix } = quantityOf(column);
  return form === "number" ? `${numberText(value)}${suffix}` : inputText(column, value).replace("T", " ");
}

/** The range of a column, rounded to its inside: what is shown lies within the range, too. */
export function rangeText(column) {
  const { low, high } = column;
  const { form, suffix } = quantityOf(column);
  if (form !== "number") return `${valueText(column, low)} to ${valueText(column, high)}`;
  for (let digits = 4; digits <= 17; digits += 1) {
    const [from, to] = [roundedTo(low, digits, Math.ceil), roundedTo(high, digits, Math.floor)];
    if (low <= from && from <= to && to <= high) {
      return `${plainText(from, digits)}${suffix} to ${plainText(to, digits)}${suffix}`;
    }
  }
  return `${low} to ${high}`;
}

// A number with so many digits, rounded up or down; whole numbers stay as they are.
function roundedTo(value, digits, round) {
  if (value === 0 || (Number.isInteger(value) && Math.abs(value) < 1e7)) return value;
  const [mantissa, exponent] = value.toExponential(17).split("e");
  return Number(`${round(Number(`${mantissa}e${digits - 1}`))}e${Number(exponent) - digits + 1}`);
}

function plainText(value, digits) {
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return numberText(value);
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return withMinus(String(Number(value.toPrecision(digits)).toExponential()));
  return withMinus(value.toLocaleString("en-US", { maximumSignificantDigits: digits }));
}

/** A value as an input of the right type holds it. */
export function inputText(column, value) {
  if (value === null || value === undefined) return "";
  const { form, isDay } = quantityOf(column);
  if (column.kind !== "numeric" || form === "number") return String(value);
  if (form === "time")
    return isoText(value)
      .slice(11, 23)
      .replace(/\.?0+$/, (zeros) => (zeros[0] === "." ? "" : zeros));
  const text = isoText(value);
  if (isDay && value % DAY === 0) return text.slice(0, 10);
  return text.slice(0, value % 1 ? 23 : 19);
}

function isoText(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** The value of an input's text: a number, null for a missing value, undefined where it is neither. */
export function parseValue(column, text) {
  return readValue(column, text).value;
}

/** The same, as {value, isDoubtful}: whether the reader should be shown how the text was read. */
export function readValue(column, text) {
  const trimmed = text.trim();
  if (!trimmed || trimmed === "–" || trimmed === "missing") return { value: null, isDoubtful: false };
  const { form, suffix } = quantityOf(column);
  if (form === "number") {
    const unit = suffix.trim();
    const digits = unit && trimmed.endsWith(unit) ? trimmed.slice(0, -unit.length) : trimmed;
    return readNumber(digits) || { value: undefined, isDoubtful: false };
  }
  const iso = form === "time" ? `1970-01-01T${trimmed}` : trimmed.replace(" ", "T");
  const zoned = /T.*([Z]|[+-]\d\d:?\d\d)$/.test(iso) || !iso.includes("T") ? iso : `${iso}Z`;
  const milliseconds = Date.parse(zoned);
  return { value: Number.isNaN(milliseconds) ? undefined : milliseconds / 1000, isDoubtful: false };
}

/** How numbers are written and read, for tests and for the curious. */
export const TEXTS = {
  boundText,
  changeText,
  exactShareText,
  numberText,
  parseValue,
  rangeText,
  readNumber,
  scoreText,
  shareText,
  valueText,
};
