"""Rows to learn from: tensors on the device, or rows that are read and encoded batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tartree.training.jitter import CurveFeatures


class Batch(NamedTuple):
    """Some rows, on the device of the tree."""

    x: Tensor  # (batch, features), or (groups of members, batch, features)
    target: Tensor  # (batch, ...), or (members, batch)
    weight: Tensor | None  # (batch,) or (members, batch)


class Rows(Protocol):
    """A table to learn from.

    Attributes
    ----------
    curves : CurveFeatures or None
        How features are made from values, if some belong to curves; noise is on the values.

    Examples
    --------
    >>> rows: Rows = TensorRows(torch.zeros(5, 2), torch.arange(5))
    >>> len(rows)
    5
    """

    @property
    def curves(self) -> CurveFeatures | None: ...

    def __len__(self) -> int: ...

    def take(self, index: Tensor | None) -> Batch:
        """Return the rows of an index on the CPU, or all of them.

        Parameters
        ----------
        index : Tensor of shape (batch,) or None

        Returns
        -------
        Batch
        """


class TensorRows:
    """A table that fits on the device: whole tensors, batches by index.

    Parameters
    ----------
    x : Tensor of shape (rows, features)
    target : Tensor of shape (rows, ...)
    weight : Tensor of shape (rows,) or (members, rows), optional
    total : float, optional
        Weight of all rows before equal rows were joined, for penalties.
    curves : CurveFeatures, optional
        How features are made from values.

    Examples
    --------
    >>> rows = TensorRows(torch.zeros(5, 2), torch.arange(5))
    >>> rows.take(torch.tensor([3, 1])).target
    tensor([3, 1])
    """

    def __init__(
        self,
        x: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        total: float | None = None,
        curves: CurveFeatures | None = None,
    ) -> None:
        self.x, self.target, self.weight, self.curves = x, target, weight, curves
        self.total = total  # weight of all rows before equal rows were merged; penalties need it

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Tensor | None) -> Batch:
        if index is None:
            return Batch(self.x, self.target, self.weight)
        index = index.to(self.x.device, non_blocking=True)
        weight = None if self.weight is None else self.weight.index_select(-1, index)
        return Batch(self.x.index_select(0, index), self.target.index_select(0, index), weight)


class MemberRows:
    """Tables of equal length side by side, each for as many members: folds or runs with different rows.

    Consecutive members learn from one table. Unlike with one table for all and weights of 0, no member computes the
    rows of others.

    Parameters
    ----------
    x : Tensor of shape (rows, tables, features)
    target : Tensor of shape (rows, tables, ...)
    weight : Tensor of shape (rows, tables), optional
        0 pads a table that is shorter than others.
    share : int
        Members that learn from a table.
    curves : CurveFeatures, optional
        How features are made from values.

    Examples
    --------
    >>> rows = TensorRows(torch.zeros(5, 2), torch.arange(5))
    >>> MemberRows.gather(rows, [torch.tensor([0, 1]), torch.tensor([3, 4])]).take(None).target
    tensor([[0, 1],
            [3, 4]])
    """

    def __init__(
        self, x: Tensor, target: Tensor, weight: Tensor | None, share: int, curves: CurveFeatures | None = None
    ) -> None:
        self.x, self.target, self.weight, self.share, self.curves = x, target, weight, share, curves

    @classmethod
    def gather(cls, rows: TensorRows, lists: Sequence[Tensor], share: int = 1) -> MemberRows:
        """Make one table of each list of row indices.

        Parameters
        ----------
        rows : TensorRows
        lists : sequence of Tensor
            Row indices of each table.
        share : int
            Members that learn from a table.

        Returns
        -------
        MemberRows
        """
        index = torch.nn.utils.rnn.pad_sequence(list(lists)).to(rows.x.device)  # (rows, tables), 0 where one has ended
        weight = None if rows.weight is None else rows.weight[index]
        lengths = torch.tensor([len(rows_of_table) for rows_of_table in lists])
        if int(lengths.min()) < len(index):
            is_row = (torch.arange(len(index)).unsqueeze(1) < lengths).to(rows.x)
            weight = is_row if weight is None else weight * is_row
        return cls(rows.x[index], rows.target[index], weight, share, rows.curves)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Tensor | None) -> Batch:
        if index is None:
            return self.batch(self.x, None)
        index = index.to(self.x.device, non_blocking=True)
        return self.batch(self.x.index_select(0, index), index)

    def batch(self, x: Tensor, index: Tensor | None) -> Batch:
        """Return a batch of features that were gathered already.

        Parameters
        ----------
        x : Tensor of shape (batch, tables, features)
        index : Tensor of shape (batch,) or None

        Returns
        -------
        Batch
        """
        weight = None if self.weight is None else self._by_member(self.weight, index)
        return Batch(x.transpose(0, 1), self._by_member(self.target, index), weight)

    def _by_member(self, values: Tensor, index: Tensor | None) -> Tensor:  # (members, batch, ...)
        values = values if index is None else values.index_select(0, index)
        tables = values.transpose(0, 1).unsqueeze(1)  # (tables, 1, batch, ...)
        shared = tables.expand(-1, self.share, *tables.shape[2:])
        return shared.flatten(0, 1).contiguous()  # with a share of 1 it is a view otherwise


class LazyRows:
    """A table that is read and encoded batch by batch, for example a memory-mapped array.

    Parameters
    ----------
    read : callable
        ``read(index)`` returns the encoded rows of a sorted index, (batch, features), on the device.
    target : Tensor of shape (rows, ...)
    weight : Tensor of shape (rows,) or (members, rows), optional
    curves : CurveFeatures, optional
        How features are made from values.

    Examples
    --------
    >>> x = torch.arange(10.0).view(5, 2)
    >>> LazyRows(lambda index: x[index], torch.arange(5)).take(torch.tensor([3, 1])).x
    tensor([[2., 3.],
            [6., 7.]])
    """

    def __init__(
        self,
        read: Callable[[Tensor], Tensor],
        target: Tensor,
        weight: Tensor | None = None,
        curves: CurveFeatures | None = None,
    ) -> None:
        self.read, self.target, self.weight, self.curves = read, target, weight, curves

    def __len__(self) -> int:
        return len(self.target)

    def take(self, index: Tensor | None) -> Batch:
        if index is None:
            index = torch.arange(len(self))
        index, _ = index.sort()  # a disk is read in order; within a batch, order does not matter
        on_device = index.to(self.target.device)
        weight = None if self.weight is None else self.weight.index_select(-1, on_device)
        return Batch(self.read(index), self.target.index_select(0, on_device), weight)
