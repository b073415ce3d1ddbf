"""SearchData: the table of a search, split into folds, and encoded once for each encoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tartree.model import ModelSpec, Prepared, Sample, prepare
from tartree.model.memory_source import MemorySource, number_of_rows
from tartree.search.candidates import table_key
from tartree.search.folds import draw_rows, make_folds, read_groups
from tartree.search.problem import Problem
from tartree.search.scores import find_metric
from tartree.search.search_spec import SearchSpec


class SearchData:
    """The table of a search.

    Parameters
    ----------
    spec : SearchSpec
    X, y, sample_weight, groups
        As in `StructureSearch.fit`.
    seed : int

    Attributes
    ----------
    source : MemorySource
        With encoder and codec of the estimator's own parameters.
    splits : list of pairs of ndarray
        Rows of the table learnt from and held out in each fold.
    problem : Problem
        Its folds are positions among the rows that the search looks at.
    """

    def __init__(self, spec: SearchSpec, X: Any, y: Any, sample_weight: Any, groups: Any, seed: int) -> None:
        if number_of_rows(X) < 2:
            raise ValueError(
                f"a search needs rows to learn from and others to score, got n_samples={number_of_rows(X)}"
            )
        self._table = X, y, sample_weight
        model_spec = replace(spec.estimator.spec(), random_state=seed)
        prepared, self.source = self._prepare(model_spec)
        n_rows, target, codec = self.source.n_rows, self.source.target, self.source.codec
        groups = None if groups is None else read_groups(groups, n_rows)
        strata = codec.strata(target)
        rows = draw_rows(n_rows, strata, spec.max_rows, seed)
        weight = self.source.sample_weight
        self._rows = rows if weight is None else rows[weight[rows] > 0]
        self.splits = make_folds(spec.folds, target.numpy(), strata, groups, self._rows, seed)
        metric = find_metric(codec.task, spec.scoring)
        fewest = min(len(held_out) for _, held_out in self.splits)
        if fewest < metric.least_rows:
            raise ValueError(f"folds must hold out {metric.least_rows} rows at least for {metric.label}, got {fewest}")
        center, scale = codec.scaling
        position = np.zeros(n_rows, dtype=np.intp)
        position[self._rows] = np.arange(len(self._rows))  # only these rows are encoded
        self.problem = Problem(
            {table_key(model_spec): self.source.encoded_rows(self._rows)},
            codec.output,
            (tuple((position[learnt], position[held_out]) for learnt, held_out in self.splits),),
            metric,
            None if weight is None else torch.from_numpy(weight[self._rows]).float(),
            spec.seeds,
            seed,
            prepared.device,
            None if codec.is_classes else (torch.from_numpy(center), torch.from_numpy(scale)),
        )

    @property
    def n_counted(self) -> int:
        """Rows with weight, from which the refit learns."""
        return self.source.n_counted

    def encode(self, model_spec: ModelSpec) -> Sample:
        """Return the rows of the search as candidates of a spec see them."""
        _, source = self._prepare(model_spec)
        return source.encoded_rows(self._rows)

    def _prepare(self, model_spec: ModelSpec) -> tuple[Prepared, MemorySource]:
        source = MemorySource(*self._table)
        return prepare(model_spec, source), source
