// The distribution of a regression's prediction: a mixture, one component a leaf.

/** Probability that a standard normal number is below z. */
export function normalBelow(z) {
  if (z < -38) return 0;
  if (z > 0) return 1 - normalBelow(-z);
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z < -5) return (density / -z) * tailFraction(-z);
  let term = -z;
  let sum = term;
  for (let odd = 3; term > sum * 1e-17; odd += 2) {
    term *= (z * z) / odd;
    sum += term;
  }
  return 0.5 - density * sum;
}

// z (1 / (z + 1 / (z + 2 / (z + ...)))), the continued fraction of the tail over its first term.
function tailFraction(z) {
  let fraction = z;
  for (let k = 60; k >= 1; k -= 1) fraction = z + k / fraction;
  return z / fraction;
}

/** A quantile of a mixture of {share, mean, spread}, by bisection; below(value, part) is the probability below it. */
export function mixtureQuantile(parts, level, below) {
  const present = parts.filter((part) => part.share > 1e-12);
  let low = Math.min(...present.map((part) => part.mean - 10 * part.spread));
  let high = Math.max(...present.map((part) => part.mean + 10 * part.spread));
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    let total = 0;
    for (const part of present) total += part.share * below(middle, part);
    if (total < level) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
