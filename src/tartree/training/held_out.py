"""Evaluation of the members on held-out rows, with predictions as the model makes them."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree import losses
from tartree.nn import Selection, Tree, combine, dispatch
from tartree.nn.graph_capture import Captured
from tartree.training.batches import Batch, MemberRows, Rows, TensorRows
from tartree.training.worker_group import SINGLE_WORKER, WorkerGroup


class HeldOutEvaluation:
    """Loss and score of each member on the held-out rows of all workers."""

    def __init__(
        self, tree: Tree, rows: Rows, selection: Selection, batch_size: int, workers: WorkerGroup = SINGLE_WORKER
    ) -> None:
        self.tree, self.rows, self.selection, self.workers = tree, rows, selection, workers
        self.chunks = torch.arange(len(rows)).split(max(batch_size, 4096))
        self.captured: list[tuple[Captured, list[Tensor]]] = []
        if isinstance(rows, TensorRows | MemberRows) and dispatch.captures_training(tree, rows.x):
            self.captured = [self._capture(rows.take(index)) for index in self.chunks]

    @torch.no_grad()
    def __call__(self) -> tuple[Tensor, Tensor]:
        """Return loss and score, (members,) each, on the CPU in double precision."""
        self.tree.eval()
        if self.captured:
            for run, _ in self.captured:
                run()
            sums = torch.stack([torch.stack(parts) for _, parts in self.captured]).cpu().sum(0)
        elif not len(self.rows):  # all are with other workers
            sums = torch.zeros(3, len(next(self.tree.parameters())), dtype=torch.float64)
        else:
            sums = torch.stack([torch.stack(self._sums(self.rows.take(index))).cpu() for index in self.chunks]).sum(0)
        self.tree.train()
        loss, score, weight = self.workers.sum(sums)
        return loss / weight, score / weight

    def _sums(self, batch: Batch) -> list[Tensor]:
        """Return weighted sums of losses and scores, and the sum of weights, (members,) each."""
        function = losses.mixture if self.selection == "multi" else losses.selected
        leaves = self.tree(batch.x)
        members, n_rows, _ = leaves.arrival.shape
        predicted = combine(leaves.arrival, self.tree.output.mean(leaves.numbers), self.selection)
        score = self.tree.output.score(predicted, batch.target).double()  # (members, batch)
        weight = torch.ones((), device=score.device) if batch.weight is None else batch.weight
        weight = weight.double().expand(members, n_rows)
        total = weight.sum(-1)
        loss = function(leaves, batch.target, self.tree.output, batch.weight).double() * total
        return [loss, (score * weight).sum(-1), total]

    def _capture(self, batch: Batch) -> tuple[Captured, list[Tensor]]:
        members = next(self.tree.parameters()).shape[0]
        parts = [torch.zeros(members, dtype=torch.float64, device=batch.x.device) for _ in range(3)]

        def run() -> None:
            for part, total in zip(parts, self._sums(batch), strict=True):
                part.copy_(total)

        return Captured(run), parts
