"""What a fitted tree says about rows: of a table in memory, or of one that is read from files as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tartree.estimators.precision import in_double
from tartree.estimators.rows import is_large_map
from tartree.nn import Selection, Tree
from tartree.nn.best_leaf import best_leaf
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.table.parquet import as_parquet, is_parquet
from tartree.table.places import naming

#: Numbers of the largest tensor of a prediction, at most, on a CPU and elsewhere.
CHUNK, LARGE_CHUNK = 2**23, 2**26


class Predicting:
    """Rows encoded, and brought to the leaves."""

    encoder_: TableEncoder
    structure_: Structure
    tree_: Tree
    selection: Selection

    def _encode(self, X: Any) -> NDArray[np.float32]:
        encoded: NDArray[np.float32] = self.encoder_.transform(X)
        return encoded

    def _encoded(self, X: Any) -> Tensor:
        return torch.from_numpy(self._encode(X))

    def _chunks(self, X: Any) -> Iterator[Tensor]:
        """Encoded rows in pieces of a size that keeps what is computed of them small."""
        check_is_fitted(self, "tree_")
        parameter = next(iter(self.tree_.parameters()), torch.empty(1))
        most = CHUNK if parameter.device.type == "cpu" else LARGE_CHUNK
        size = max(64, most // (self.tree_.width * len(parameter)))
        if is_parquet(X):
            yield from self._file_chunks(X, size)
        elif is_large_map(X):
            yield from (self._encoded(X[start : start + size]) for start in range(0, len(X), size))
        else:
            yield from self._encoded(X).split(size)

    def _file_chunks(self, X: Any, size: int) -> Iterator[Tensor]:
        """Encoded rows of a table in files, read by a thread in the background."""
        from tartree.training.stream import prefetch

        names = getattr(self.encoder_, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                "a model must know the names of its columns to find them in files, however: it was fitted without; "
                "give the rows as an array"
            )
        table = as_parquet(X, names.tolist())

        def pieces() -> Iterator[Tensor]:
            for file, n_before, piece in table.scan(piece_rows=min(size, 2**16)):
                with naming(table.files[file], range(n_before, n_before + piece.num_rows)):
                    found = self._encoded(piece)
                yield found
            if not table.blocks:
                yield self._encoded(table.schema.empty_table())

        with closing(prefetch(pieces(), 2)) as coming:
            yield from coming

    def _each_chunk(self, X: Any) -> Iterator[tuple[Tree, Tensor]]:
        """Pieces of a table with the tree to apply, in double precision on a CPU.

        In single precision, a row's result would depend in its last digits on the rows beside it.
        """
        tree, device = self._prediction_tree()
        for chunk in self._chunks(X):
            yield tree, chunk.to(device, torch.float64 if device.type == "cpu" else torch.float32)

    def _prediction_tree(self) -> tuple[Tree, torch.device]:
        check_is_fitted(self, "tree_")
        parameter = next(iter(self.tree_.parameters()), torch.empty(0))
        if parameter.device.type != "cpu":
            return self.tree_, parameter.device
        return in_double(self.tree_), parameter.device

    @torch.no_grad()
    def _predict_members(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """What each member predicts, chunk by chunk, (members, rows, ...)."""
        for tree, x in self._each_chunk(X):
            yield tree.predict(x, self.selection).double().cpu().numpy()

    @torch.no_grad()
    def apply(self, X: Any) -> NDArray[np.int64]:
        """The node of the leaf with the largest arrival: (rows,), or (rows, members) with several members.

        Nodes are numbered layer by layer from the root, 0, as `decision_path` does.
        """
        first_leaf = sum(self.structure_.widths[:-1]) if hasattr(self, "structure_") else 0
        parts = [best_leaf(tree, x)[0].cpu() for tree, x in self._each_chunk(X)]
        nodes = torch.cat(parts, dim=1).numpy().T + first_leaf
        return nodes if nodes.shape[1] > 1 else nodes[:, 0]

    @torch.no_grad()
    def decision_path(self, X: Any) -> Any:
        """The nodes on the most probable way to the leaf of `apply`, as a sparse indicator matrix (rows, nodes).

        With several members the nodes of all members stand side by side, and a second array says where each member's
        begin, as in scikit-learn's forests.
        """
        from tartree.explain.tree_evaluation import hard_paths

        check_is_fitted(self, "tree_")
        structure = self.structure_
        offsets = np.concatenate([[0], np.cumsum(structure.widths)])
        parts = []
        for tree, x in self._each_chunk(X):
            logits = tree.decision(x)
            paths = hard_paths(structure, tree.branching.arrivals(logits), tree.branching.probabilities(logits))
            parts.append(paths + offsets[:-1])
        nodes = np.concatenate(parts, axis=1)  # (members, rows, layers)
        n_members, n_rows, n_layers = nodes.shape
        starts = np.arange(n_members + 1) * offsets[-1]
        columns = (nodes + starts[:-1, None, None]).transpose(1, 0, 2).reshape(-1)
        ends = np.arange(n_rows + 1) * n_members * n_layers
        indicator = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(n_rows, starts[-1]))
        return indicator if n_members == 1 else (indicator, starts)

    def get_depth(self) -> int:
        """Number of decisions on the way to a leaf."""
        check_is_fitted(self, "tree_")
        return int(self.structure_.depth)

    def get_n_leaves(self) -> int:
        """Number of leaves of one member."""
        check_is_fitted(self, "tree_")
        return int(self.structure_.n_leaves)
