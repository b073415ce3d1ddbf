"""Order in which leaves can be removed: one by one, the least important first."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree.explain import tree_evaluation as ev
from tartree.nn import Tree
from tartree.nn.paths import edge_shares
from tartree.structure import Structure

#: Maximum number of rows that the order is computed on, and of elements of a tensor.
ORDER_ROWS = 256
CHUNK_NUMBERS = 2**22


@torch.no_grad()
def removal_order(tree: Tree, x: Tensor) -> list[int]:
    """Return leaves in the order of their removal; the last one stays.

    The importance of a leaf is the mean change of predictions if it alone were removed from those left. Of many leaves
    the least important quarter is removed before importances are computed again.
    """
    rows = x[torch.linspace(0, len(x) - 1, min(len(x), ORDER_ROWS)).long()]
    evaluation = ev.evaluate(tree, rows)
    structure = tree.structure
    shares = [
        edge_shares(evaluation.branching, torch.from_numpy(structure.edges(d)[2])) for d in range(structure.depth)
    ]
    removed: list[int] = []
    while len(removed) < structure.n_leaves - 1:
        left = [leaf for leaf in range(structure.n_leaves) if leaf not in set(removed)]
        cost = _costs(structure, shares, evaluation.values, removed, left)
        order = [left[k] for k in cost.argsort(stable=True).tolist()]
        removed += order[: max(1, len(left) // 4 if len(left) > 32 else 1)]
    return removed


def _costs(structure: Structure, shares: list[Tensor], values: Tensor, removed: list[int], left: list[int]) -> Tensor:
    """Return the mean change of predictions if each leaf of `left` were removed too, (left,)."""
    alive = torch.ones(structure.n_leaves, dtype=torch.bool)
    alive[removed] = False
    now = _predict(structure, shares, values, alive[None])[0]  # (rows, outputs)
    per_trial = values.shape[0] * values.shape[1] * (max(structure.widths) + 1) * values.shape[-1] * 2
    costs = []
    for part in torch.tensor(left).split(max(1, CHUNK_NUMBERS // per_trial)):
        trial = alive.repeat(len(part), 1)
        trial[torch.arange(len(part)), part] = False
        costs.append((_predict(structure, shares, values, trial) - now).abs().amax(-1).mean(-1))
    return torch.cat(costs)


def _predict(structure: Structure, shares: list[Tensor], values: Tensor, alive: Tensor) -> Tensor:
    """Return predictions with some leaves only, (trials, leaves): (trials, rows, outputs), the mean over members.

    The share of removed children goes to the others in proportion.
    """
    level = values.unsqueeze(0)  # (trials or 1, members, rows, nodes, outputs)
    for d in reversed(range(structure.depth)):
        parents, children, _ = (torch.from_numpy(part) for part in structure.edges(d))
        share = shares[d].unsqueeze(0) * alive[:, None, None, children]  # (trials, members, rows, edges)
        shape = (*share.shape[:-1], structure.widths[d])
        total = share.new_zeros(shape).index_add_(-1, parents, share)
        above = torch.zeros(len(alive), structure.widths[d], dtype=torch.bool)
        above = above.long().index_add_(1, parents, alive[:, children].long()) > 0
        flow = share.unsqueeze(-1) * level.index_select(-2, children)
        summed = flow.new_zeros((*shape, flow.shape[-1])).index_add_(-2, parents, flow)
        # Shares may vanish if all leaves left are improbable: then any of them may predict.
        level = summed / total.clamp_min(1e-300).unsqueeze(-1)
        alive = above
    return level[..., 0, :].mean(1)
