"""A look at some rows before training: how much noise they bear, and what modules of a tree want to know of them."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree.nn import Tree
from tartree.training.rows import OwnRows, Rows, TensorRows

#: Rows that are looked at for noise, at most.
SOME_ROWS = 1024
#: And for quantiles.
MANY_ROWS = 2**16


def some_rows(rows: Rows) -> Tensor:
    """Encoded rows of a table, evenly taken, (rows, features)."""
    if isinstance(rows, TensorRows | OwnRows):
        return _evenly(rows.x.flatten(0, -2), SOME_ROWS)
    return rows.take(torch.arange(0, len(rows), -(-len(rows) // SOME_ROWS))).x


def show_rows(tree: Tree, rows: Rows) -> None:
    """Let modules that have a method `look_at` see rows to learn from, those with a weight above 0."""
    looks = [look for module in tree.modules() if callable(look := getattr(module, "look_at", None))]
    if looks:
        tables = _tables(rows)
        for look in looks:
            look(tables)


def _tables(rows: Rows) -> list[Tensor]:
    """One table for all members, or each for as many of them, (rows, features)."""
    if isinstance(rows, OwnRows):
        weights = [None] * rows.x.shape[1] if rows.weight is None else list(rows.weight.unbind(1))
        return [_with_weight(x, weight) for x, weight in zip(rows.x.unbind(1), weights, strict=True)]
    if isinstance(rows, TensorRows):
        x, weight = rows.x, rows.weight
    else:
        x, _, weight = rows.take(torch.arange(0, len(rows), -(-len(rows) // MANY_ROWS)))
    if weight is None or weight.dim() == 1:
        return [_with_weight(x, weight)]
    return [_with_weight(x, own) for own in weight]


def _with_weight(x: Tensor, weight: Tensor | None) -> Tensor:
    return _evenly(x if weight is None else x[weight > 0], MANY_ROWS)


def _evenly(x: Tensor, count: int) -> Tensor:
    return x[:: max(1, -(-len(x) // count))]
