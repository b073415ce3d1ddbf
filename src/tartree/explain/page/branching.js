// From the logits of a node to the shares of its children.

import { ACTIVATIONS } from "./records.js";

/** Shares of the children of a node with so many children; two children have one logit, the difference of theirs. */
export function branchShares(activation, logits, nChildren) {
  if (nChildren === 1) return [1];
  return ACTIVATIONS[activation](nChildren === 2 ? [logits[0] / 2, -logits[0] / 2] : logits);
}
