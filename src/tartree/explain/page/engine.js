// Predictions from the embedded parameters, in double precision, as the library computes them.
//
// A model is {layers, members, selection, branching, output}: `layers[d][i]` are the children of node i of layer d. A
// member is {decision, leaf, scales}: two functions of the row, each {kind, sizes, hidden, weights, biases}, and what
// the temperature multiplies each logit by (null: nothing).

import { branchShares } from "./branching.js";
import { mixtureQuantile } from "./mixture.js";
import { OUTPUTS } from "./records.js";

/** Numbers of {type, data}, base64 of little-endian float32 ("f4") or float64 ("f8"). */
export function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const single = packed.type === "f4";
  const size = single ? 4 : 8;
  return Float64Array.from({ length: bytes.length / size }, (_, i) =>
    single ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true),
  );
}

/** A model with its arrays unpacked; the rest stays as it is. */
export function openModel(model) {
  const open = (entry) => ({ ...entry, weights: entry.weights.map(unpack), biases: entry.biases.map(unpack) });
  const members = model.members.map((member) => ({
    ...member,
    decision: open(member.decision),
    leaf: open(member.leaf),
    scales: member.scales ? unpack(member.scales) : null,
  }));
  return { ...model, members };
}

/** Whether the page can compute the model: custom decisions and leaves cannot be embedded. */
export function isComputable(model) {
  const opaque = ({ decision, leaf }) => decision.kind === "opaque" || leaf.kind === "opaque";
  return model.branching !== "custom" && !model.members.some(opaque);
}

/**
 * One member on an encoded row: {shares, arrivals, numbers}.
 *
 * `shares[d][i]` are the branching probabilities of a node, `arrivals[d][i]` its arrival, `numbers[leaf]` the raw
 * output of a leaf.
 */
export function evaluateMember(model, member, x) {
  const { decision, leaf, scales } = model.members[member];
  const logits = compute(decision, x);
  const shares = [];
  const arrivals = [[1]];
  let index = 0;
  model.layers.forEach((layer, depth) => {
    const below = new Array(1 + Math.max(...layer.map((children) => Math.max(...children)))).fill(0);
    shares.push(
      layer.map((children, node) => {
        const size = children.length > 2 ? children.length : children.length - 1;
        const entry = Array.from({ length: size }, (_, i) => {
          const logit = logits ? logits[index + i] : 0;
          return scales ? logit * scales[index + i] : logit;
        });
        index += size;
        const parts = branchShares(model.branching, entry, children.length);
        children.forEach((child, i) => {
          below[child] += arrivals[depth][node] * parts[i];
        });
        return parts;
      }),
    );
    arrivals.push(below);
  });
  const flat = compute(leaf, x);
  const size = model.output.nNumbers;
  const numbers = arrivals[arrivals.length - 1].map((_, at) => Array.from(flat.slice(at * size, (at + 1) * size)));
  return { shares, arrivals, numbers };
}

/** Outputs of a function of the row, null where all of them are 0. */
export function compute(network, x) {
  const { kind, sizes, hidden, weights, biases } = network;
  if (kind === "uniform") return null;
  if (kind === "constant") return biases[0];
  const nOutputs = biases[biases.length - 1].length;
  if (kind === "linear") return affine(weights[0], biases[0], 0, nOutputs, x);
  const outputs = new Float64Array(nOutputs);
  const last = weights.length - 1;
  let first = 0;
  sizes.forEach((size, group) => {
    let units = affine(weights[0], biases[0], group * hidden, hidden, x);
    for (let layer = 1; layer < last; layer += 1) {
      units = affine(weights[layer], biases[layer], group * hidden, hidden, units.map(elu));
    }
    outputs.set(affine(weights[last], biases[last], first, size, units.map(elu)), first);
    first += size;
  });
  return outputs;
}

// Rows `first` to `first + count` of a matrix times a vector, plus the bias.
function affine(weight, bias, first, count, x) {
  const result = new Float64Array(count);
  for (let unit = 0; unit < count; unit += 1) {
    const row = first + unit;
    let sum = bias[row];
    for (let i = 0, at = row * x.length; i < x.length; i += 1, at += 1) sum += weight[at] * x[i];
    result[unit] = sum;
  }
  return result;
}

function elu(value) {
  return value > 0 ? value : Math.expm1(value);
}

/** What a leaf predicts from its numbers: probabilities, or {mean, spread} of each target in units of the model. */
export function readLeaf(output, numbers) {
  return OUTPUTS[output.kind].leaf(numbers, output);
}

/** Weights of the leaves in the prediction: their arrival, or all for the leaf of the largest arrival. */
export function leafWeights(model, arrivals) {
  const entry = arrivals[arrivals.length - 1];
  if (model.selection !== "single") return entry;
  const chosen = entry.indexOf(Math.max(...entry));
  return entry.map((_, leaf) => (leaf === chosen ? 1 : 0));
}

/**
 * The prediction for an encoded row, and what led to it: {members, probabilities} or {members, targets}.
 *
 * A target is {value, std, low, high}: for leaves with a spread the quantiles 0.05 and 0.95 of the mixture, otherwise null.
 */
export function predict(model, x) {
  const members = model.members.map((_, member) => evaluateMember(model, member, x));
  const memberParts = members.map(({ arrivals, numbers }) => ({
    weights: leafWeights(model, arrivals),
    leaves: numbers.map((entry) => readLeaf(model.output, entry)),
  }));
  if (model.output.isClasses) {
    const sums = new Array(model.output.nTargets).fill(0);
    for (const { weights, leaves } of memberParts) {
      leaves.forEach((leaf, index) => leaf.forEach((share, label) => (sums[label] += weights[index] * share)));
    }
    const total = sums.reduce((sum, share) => sum + share, 0);
    return { members, probabilities: sums.map((share) => share / total) };
  }
  const { nTargets, center, scale, kind } = model.output;
  const { below } = OUTPUTS[kind];
  const targets = Array.from({ length: nTargets }, (_, target) => {
    const parts = memberParts.flatMap(({ weights, leaves }) =>
      leaves.map((leaf, index) => ({ share: weights[index] / members.length, ...leaf[target] })),
    );
    const original = (value) => center[target] + scale[target] * value;
    const mean = parts.reduce((sum, part) => sum + part.share * part.mean, 0);
    if (!below) return { value: original(mean), std: null, low: null, high: null };
    const square = parts.reduce((sum, part) => sum + part.share * (part.mean ** 2 + part.spread ** 2), 0);
    return {
      value: original(mean),
      std: scale[target] * Math.sqrt(Math.max(square - mean * mean, 0)),
      low: original(mixtureQuantile(parts, 0.05, below)),
      high: original(mixtureQuantile(parts, 0.95, below)),
    };
  });
  return { members, targets };
}
