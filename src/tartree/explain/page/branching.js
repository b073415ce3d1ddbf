// From the logits of a node to the shares of its children.

export const ACTIVATIONS = { softmax, sigsoftmax, spherical, sparsemax, entmax15, hard };

/** Shares of the children of a node with so many children; two children have one logit, the difference of theirs. */
export function branchShares(activation, logits, nChildren) {
  if (nChildren === 1) return [1];
  return ACTIVATIONS[activation](nChildren === 2 ? [logits[0] / 2, -logits[0] / 2] : logits);
}

export function softmax(logits) {
  const largest = Math.max(...logits);
  return shares(logits.map((z) => Math.exp(z - largest)));
}

function sigsoftmax(logits) {
  return softmax(logits.map((z) => z + Math.min(z, 0) - Math.log1p(Math.exp(-Math.abs(z)))));
}

function spherical(logits) {
  const shifted = logits.map((z) => 1 + z);
  const largest = Math.max(Number.MIN_VALUE, ...shifted.map(Math.abs));
  return shares(shifted.map((z) => (z / largest) ** 2 + Number.EPSILON));
}

function sparsemax(logits) {
  const sorted = [...logits].sort((a, b) => b - a);
  let sum = 0;
  let threshold = 0;
  sorted.forEach((z, index) => {
    sum += z;
    if (1 + (index + 1) * z > sum) threshold = (sum - 1) / (index + 1);
  });
  return logits.map((z) => Math.max(z - threshold, 0));
}

// Shares are squares of z / 2 - t above 0; t solves a quadratic over the largest logits, as many as stay above it.
function entmax15(logits) {
  const largest = Math.max(...logits);
  const halves = logits.map((z) => (z - largest) / 2);
  const sorted = [...halves].sort((a, b) => b - a);
  let sum = 0;
  let squares = 0;
  let threshold = 0;
  for (let n = 1; n <= sorted.length; n += 1) {
    sum += sorted[n - 1];
    squares += sorted[n - 1] ** 2;
    const mean = sum / n;
    const rest = (1 - (squares - n * mean * mean)) / n;
    const candidate = mean - Math.sqrt(Math.max(rest, 0));
    if (candidate > sorted[n - 1]) break;
    threshold = candidate;
  }
  return shares(halves.map((z) => Math.max(z - threshold, 0) ** 2));
}

// All to the child of the largest logit, the first of equal ones.
function hard(logits) {
  const chosen = logits.indexOf(Math.max(...logits));
  return logits.map((_, child) => (child === chosen ? 1 : 0));
}

function shares(weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
