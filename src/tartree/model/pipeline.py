"""The one way to fit: source of rows, encoder and codec, tree, training, refit."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from torch import Tensor

from tartree.model.fitted import FittedModel, Provenance
from tartree.model.memory_source import MemorySource
from tartree.model.sample import Sample
from tartree.model.spec import Limits, ModelSpec, find_device, generators
from tartree.model.stream_source import parquet_source
from tartree.model.target import TargetCodec, ValueCodec
from tartree.nn import Branching, MLPDecision, Output, Path, PathLeaf, SparseDecision, Tree
from tartree.nn.families import plain
from tartree.nn.leaves import set_raw_outputs
from tartree.nn.subtree import without_empty_leaves, without_idle_decisions
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.table.parquet import is_parquet
from tartree.training import SINGLE_WORKER, Callback, CheckpointStore, History, Recipe, Rows, WorkerGroup, train
from tartree.training.held_out import HeldOutEvaluation

#: Without early stopping, fraction of the rows on which a tree is compared with a linear model, or with trees of other
#: penalties on terms.
COMPARED_FRACTION = 0.2
#: Penalties on terms that are compared, in units of the recipe's; of equal ones the first is taken.
PENALTY_FACTORS = (1.0, 0.5, 2.0, 4.0)

#: Rows whose leaves are found together.
COUNTED_ROWS = 4096


class DataSource(Protocol):
    """Rows to learn from: in memory, streamed from files, or one worker's part of a stream.

    After `learn`, `encoder`, `codec` and `n_counted` (rows with weight) can be read.

    Examples
    --------
    >>> source: DataSource = data_source(ModelSpec("classification"), [[0.0], [1.0]], ["a", "b"])
    >>> source.is_lazy
    False
    """

    @property
    def is_streamed(self) -> bool: ...

    @property
    def is_lazy(self) -> bool: ...

    @property
    def target_name(self) -> str | None: ...

    encoder: TableEncoder
    codec: TargetCodec
    n_rows: int
    n_counted: int

    def learn(
        self,
        spec: ModelSpec,
        seeds: NDArray[Any],
        encoder: TableEncoder | None,
        codec: TargetCodec | None,
        workers: WorkerGroup,
    ) -> None: ...

    def split_rows(self, spec: ModelSpec, rng: np.random.RandomState, device: torch.device) -> tuple[Rows, Rows]: ...

    def all_rows(self, device: torch.device) -> Rows: ...

    def sample(self, workers: WorkerGroup) -> Sample | None: ...

    def locating(self) -> Any: ...


def data_source(spec: ModelSpec, X: Any, y: Any, sample_weight: Any = None) -> DataSource:
    """Return the source for a table in memory, or in files with names of columns for `y` and `sample_weight`.

    Parameters
    ----------
    spec : ModelSpec
    X : table of shape (rows, columns), or in files
    y : array of shape (rows,) or (rows, targets), or str or list of str
        With files, names of columns.
    sample_weight : array of shape (rows,), or str, optional

    Returns
    -------
    DataSource

    Examples
    --------
    >>> source = data_source(ModelSpec("classification"), [[0.0], [1.0]], ["a", "b"])
    >>> source.is_streamed
    False
    """
    return parquet_source(spec, X, y, sample_weight) if is_parquet(X) else MemorySource(X, y, sample_weight)


@dataclass
class Prepared:
    """What a fit does before training: a tree with drawn weights on its device, and the rows to learn from.

    Parameters
    ----------
    spec : ModelSpec
    source : DataSource
        After `learn`.
    tree : Tree
    settings : dict
        Arguments of `Tree.build`.
    seeds : ndarray of shape (1 + members,)
        Of the run, and of each member.
    rng : RandomState
        After the seeds were drawn.
    temperature : float, optional
        See `Provenance`.

    Examples
    --------
    >>> spec = ModelSpec("classification", depth=2)
    >>> prepared = prepare(spec, data_source(spec, [[0.0], [1.0]], ["a", "b"]))
    >>> prepared.tree.structure.n_leaves
    4
    """

    spec: ModelSpec
    source: DataSource
    tree: Tree
    settings: dict[str, Any]
    seeds: NDArray[Any]
    rng: np.random.RandomState
    temperature: float | None = None

    @property
    def device(self) -> torch.device:
        """Device of the tree."""
        return find_device(self.spec.device)

    def rebuild(self, structure: Structure) -> None:
        """Replace the tree by one of another structure, with weights drawn from the same seeds.

        Parameters
        ----------
        structure : Structure
        """
        self.tree = self.new_tree(structure)

    def new_tree(self, structure: Structure, copies: int = 1) -> Tree:
        """Build a tree for the encoded rows on the device, with weights drawn from the seeds.

        Parameters
        ----------
        structure : Structure
        copies : int
            How many members have the weights of each.

        Returns
        -------
        Tree
        """
        source, seeds = self.source, np.repeat(self.seeds[1:], copies)
        n_features, output = len(source.encoder.features_), source.codec.output
        settings = {**self.settings, "members": len(seeds)}
        limits = self.spec.limits(source.n_counted)
        settings = sparse_settings(settings, limits, columns_of(source.encoder), structure)
        tree = build_tree(structure, n_features, output, settings, int(self.seeds[0]))
        tree.reset_parameters(generators(seeds))
        return tree.to(self.device)

    def finish(
        self, history: History | None, refit_history: History | None = None, workers: WorkerGroup = SINGLE_WORKER
    ) -> FittedModel:
        """Return the tree as a model; without a history it has not been trained.

        Parameters
        ----------
        history, refit_history : History or None
        workers : WorkerGroup

        Returns
        -------
        FittedModel
        """
        source, tree = self.source, self.tree
        tree.decision, tree.leaf = plain(tree.decision), plain(tree.leaf)
        settings = _plain_settings(self.settings)
        if isinstance(source.codec, ValueCodec) and source.codec.is_constant is not None and history is not None:
            for target in np.flatnonzero(source.codec.is_constant).tolist():  # training would leave noise around 0
                set_raw_outputs(tree.leaf, tree.output.n_numbers, tree.output.raw_zero(target))
        if self.spec.is_hard and history is not None:
            tree.branching = Branching(tree.structure, "hard", members=self.spec.members).to(self.device)
            self.tree = tree = without_idle_decisions(without_empty_leaves(tree, self._leaves_with_rows()))
            settings = {**settings, "branching": "hard"}
        provenance = Provenance(
            settings,
            history,
            refit_history,
            source.is_streamed,
            source.target_name,
            source.sample(workers),
            temperature=self.temperature,
        )
        return FittedModel(source.encoder, tree.eval(), source.codec, self.spec.selection, provenance)

    @torch.no_grad()
    def _leaves_with_rows(self) -> NDArray[np.bool_]:
        """Return which leaves training rows arrive at, (leaves,); all of them if rows are not in memory."""
        arrives = np.zeros(self.tree.structure.n_leaves, dtype=bool)
        if not isinstance(self.source, MemorySource) or self.source.is_lazy:
            return ~arrives
        x = self.source.x if self.source.weight is None else self.source.x[torch.from_numpy(self.source.weight > 0)]
        self.tree.eval()
        for rows in x.split(COUNTED_ROWS):
            arrives |= (self.tree(rows.to(self.device)).arrival > 0.5).flatten(0, 1).any(0).cpu().numpy()
        return arrives


@torch.no_grad()
def _copy_members(tree: Tree, source: Tree, members: slice) -> None:
    """Copy parameters and buffers, such as the terms that are left, from some members of a tree of more."""
    tensors = zip([*tree.parameters(), *tree.buffers()], [*source.parameters(), *source.buffers()], strict=True)
    for tensor, of_source in tensors:
        tensor.copy_(of_source if tensor.shape == of_source.shape else of_source[members])


def columns_of(encoder: TableEncoder) -> list[int]:
    """Return the column of each feature."""
    return [feature.column for feature in encoder.features_]


def _plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a trained tree: leaves that share what is above them have become linear ones."""
    return {**settings, "leaf": None} if isinstance(settings["leaf"], Path) else settings


def sparse_settings(
    settings: dict[str, Any], limits: Limits, columns: Sequence[int], structure: Structure
) -> dict[str, Any]:
    """Return settings of a tree for training, whose parts remove terms until they are within the limits.

    Parameters
    ----------
    settings : dict
        Arguments of `Tree.build`.
    limits : Limits
    columns : sequence of int
        The column of each feature.
    structure : Structure

    Returns
    -------
    dict
    """

    def decision(structure: Structure, n_features: int, members: int) -> SparseDecision:
        assert limits.features is not None
        return SparseDecision(structure, n_features, columns=columns, most=limits.features, members=members)

    def leaf(structure: Structure, n_features: int, n_numbers: int, members: int) -> PathLeaf:
        scale = settings["leaf"].scale if isinstance(settings.get("leaf"), Path) else Path().scale
        return PathLeaf(
            structure, n_features, n_numbers, scale=scale, columns=columns, most=limits.terms, members=members
        )

    settings = dict(settings)
    if limits.features is not None and structure.n_logits:
        settings["decision"] = decision
    needs_columns = limits.terms is not None or isinstance(settings.get("leaf"), Path)
    return {**settings, "leaf": leaf} if needs_columns else settings


def build_tree(structure: Structure, n_features: int, output: Output, settings: dict[str, Any], seed: int = 0) -> Tree:
    """Build a tree. Modules of the user may draw weights from torch's generator, whose state is restored.

    Parameters
    ----------
    structure : Structure
    n_features : int
        Features of the encoded rows.
    output : Output
    settings : dict
        Other arguments of `Tree.build`.
    seed : int
        Seed of torch's generator.

    Returns
    -------
    Tree
        On the CPU; `reset_parameters` draws weights of its members from their own seeds.

    Examples
    --------
    >>> from tartree.nn import Classes
    >>> build_tree(Structure(2), 4, Classes(3), {"leaf_layers": 0}).structure.n_leaves
    4
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Tree.build(structure, n_features, output, **settings)


def prepare(
    spec: ModelSpec,
    source: DataSource,
    *,
    structure: Structure | None = None,
    resumed: FittedModel | None = None,
    workers: WorkerGroup = SINGLE_WORKER,
) -> Prepared:
    """Do everything that a fit does before training.

    Parameters
    ----------
    spec : ModelSpec
    source : DataSource
    structure : Structure, optional
        By default that of the spec for the rows at hand.
    resumed : FittedModel, optional
        Model whose training goes on; it is not changed.
    workers : WorkerGroup
        Workers that fit the same model to other shards of the source.

    Returns
    -------
    Prepared

    Examples
    --------
    >>> spec = ModelSpec("classification", depth=2)
    >>> prepare(spec, data_source(spec, [[0.0], [1.0]], ["a", "b"])).source.n_counted
    2
    """
    rng = check_random_state(spec.random_state)
    seeds = workers.gather(spec.draw_seeds(rng))[0]
    device = find_device(spec.device)
    if resumed is None:
        source.learn(spec, seeds, None, None, workers)
        prepared = Prepared(spec, source, torch.nn.Module(), spec.tree_settings, seeds, rng)  # type: ignore[arg-type]
        prepared.rebuild(spec.structure(source.n_counted) if structure is None else structure)
        return prepared
    assert isinstance(resumed.encoder, TableEncoder)
    source.learn(spec, seeds, resumed.encoder, resumed.codec, workers)
    _check_unchanged(spec, resumed)
    tree = copy.deepcopy(resumed.tree)
    if spec.is_hard:  # decisions learn again
        tree.branching = Branching(tree.structure, spec.branching, members=spec.members)
    sparse = sparse_settings({}, spec.limits(source.n_counted), columns_of(source.encoder), tree.structure).get(
        "decision"
    )
    if sparse is not None and isinstance(tree.decision, MLPDecision):
        limited = sparse(tree.structure, len(source.encoder.features_), resumed.n_members)
        limited.mlp, tree.decision = tree.decision.mlp, limited
    tree.output = source.codec.output
    tree.to(device)
    provenance = resumed.provenance
    return Prepared(spec, source, tree, provenance.settings, seeds, rng, provenance.temperature)


def _check_unchanged(spec: ModelSpec, resumed: FittedModel) -> None:
    """Raise if parameters describe another tree than the one whose training goes on."""
    is_pruned = spec.is_hard and (not resumed.structure.is_regular or not resumed.structure.depth)
    if spec.depth != "auto" and not resumed.is_grown and not is_pruned:
        structure = Structure(spec.depth, spec.window, spec.stride)
        if structure != resumed.structure:
            raise ValueError(f"warm_start must keep the structure {resumed.structure}, got {structure}")
    settings = {**_plain_settings(spec.tree_settings), **({"branching": "hard"} if spec.is_hard else {})}
    for name, value in settings.items():
        before = resumed.provenance.settings[name]
        if value != before:
            raise ValueError(f"warm_start must keep {name}={before!r}, got {name}={value!r}")


def fit(
    spec: ModelSpec,
    source: DataSource,
    *,
    resumed: FittedModel | None = None,
    workers: WorkerGroup = SINGLE_WORKER,
    checkpoints: CheckpointStore | None = None,
) -> FittedModel:
    """Fit a model.

    Parameters
    ----------
    spec : ModelSpec
    source : DataSource
        Rows to learn from.
    resumed : FittedModel, optional
        Model whose training goes on; it is not changed.
    workers : WorkerGroup
        Workers that fit the same model to other shards of the source; in the end all have it.
    checkpoints : CheckpointStore, optional
        Stores the state of training after each epoch, for resuming.

    Returns
    -------
    FittedModel

    Examples
    --------
    >>> from tartree.training import Recipe
    >>> spec = ModelSpec("classification", depth=1, recipe=Recipe(epochs=2), random_state=0)
    >>> model = fit(spec, data_source(spec, [[0.0], [1.0], [3.0]], ["a", "b", "b"]))
    >>> len(model.provenance.history)
    2
    """
    with source.locating():
        prepared = prepare(spec, source, resumed=resumed, workers=workers)
        return _Fit(prepared, workers, checkpoints, spec.recipe).run(compares=resumed is None)


@dataclass
class _Fit:
    """The training of a prepared tree."""

    prepared: Prepared
    workers: WorkerGroup
    checkpoints: CheckpointStore | None
    recipe: Recipe

    def run(self, *, compares: bool) -> FittedModel:
        prepared, spec, source = self.prepared, self.prepared.spec, self.prepared.source
        device, stopping = prepared.device, spec.stopping(source.n_rows)
        compares = compares and not source.is_lazy
        if compares and spec.compares_penalties(source.n_counted):
            history = self._choose_penalty()
            if history.interrupted:
                return prepared.finish(history)
        compares = compares and spec.may_be_linear(source.n_counted)
        if compares and not stopping:
            history = self._compare_on_held_out()
            if history.interrupted:  # the weights so far are kept
                return prepared.finish(history)
        validation: Rows | None = None
        if stopping:
            rows, validation = source.split_rows(spec, prepared.rng, device)
        else:
            rows = source.all_rows(device)
        history = self._train(
            prepared.tree, rows, validation, spec.callbacks, spec.verbose, checkpoints=self.checkpoints
        )
        if compares and validation is not None and not history.interrupted:
            linear = self._linear_tree()
            linear_history = self._train(linear, rows, validation)
            history.interrupted = linear_history.interrupted
            if not history.interrupted and self._is_better(linear, prepared.tree, validation):
                prepared.tree, history = linear, linear_history
        refit_history = None
        if stopping == "refit" and not history.interrupted:
            refit_history = self._refit(history)
        return prepared.finish(history, refit_history, self.workers)

    def _train(
        self,
        tree: Tree,
        rows: Rows,
        validation: Rows | None = None,
        callbacks: Sequence[Callback] = (),
        verbose: int = 0,
        **options: Any,
    ) -> History:
        prepared = self.prepared
        return train(
            tree,
            rows,
            self.recipe,
            generator=generators(prepared.seeds[:1])[0],
            validation=validation,
            selection=prepared.spec.selection,
            callbacks=callbacks,
            verbose=verbose,
            workers=self.workers,
            **options,
        )

    def _rows_and_held_out(self) -> tuple[Rows, Rows]:
        """Return rows to learn from and to compare on."""
        source = self.prepared.source
        assert isinstance(source, MemorySource)
        split = source.split(COMPARED_FRACTION, np.random.RandomState(int(self.prepared.seeds[0])))
        rows, held_out = (source.rows(self.prepared.device, index) for index in split)
        return rows, held_out

    def _linear_tree(self) -> Tree:
        spec = self.prepared.spec
        return self.prepared.new_tree(Structure(0, spec.window, spec.stride))

    def _compare_on_held_out(self) -> History:
        """Replace the tree by a linear model, depth 0, if that predicts held-out rows better; draw new weights."""
        prepared = self.prepared
        rows, held_out = self._rows_and_held_out()
        history = self._train(prepared.tree, rows, verbose=prepared.spec.verbose)
        if history.interrupted:
            return history
        linear = self._linear_tree()
        if self._train(linear, rows).interrupted:  # the tree that was compared is kept
            history.interrupted = True
            return history
        is_better = self._is_better(linear, prepared.tree, held_out)
        prepared.rebuild(linear.structure if is_better else prepared.tree.structure)
        return history

    def _choose_penalty(self) -> History:
        """Set the recipe's penalty on terms to the one with which held-out rows are predicted best."""
        prepared = self.prepared
        rows, held_out = self._rows_and_held_out()
        tree = prepared.new_tree(prepared.tree.structure, copies=len(PENALTY_FACTORS))
        assert isinstance(tree.leaf, PathLeaf)
        n_members = prepared.spec.members
        tree.leaf.penalty_factors.copy_(torch.tensor(PENALTY_FACTORS).repeat(n_members).view(-1, 1, 1))
        history = self._train(tree, rows, verbose=prepared.spec.verbose)
        if history.interrupted:  # the weights so far are kept, those of the recipe's penalty, which is the first
            _copy_members(prepared.tree, tree, slice(None, None, len(PENALTY_FACTORS)))
            return history
        errors = self._errors(tree, held_out).view(n_members, -1).mean(0)
        factor = PENALTY_FACTORS[int(errors.argmin())]
        self.recipe = replace(self.recipe, sparsity=factor * self.recipe.sparsity)
        return history

    def _is_better(self, tree: Tree, other: Tree, rows: Rows) -> bool:
        """Whether the members of a tree predict rows better than those of another one, on average."""
        return bool(self._errors(tree, rows).mean() < self._errors(other, rows).mean())

    def _errors(self, tree: Tree, rows: Rows) -> Tensor:
        """Return the log loss or squared error of each member: likelihoods of values depend on few rows."""
        spec = self.prepared.spec
        loss, score = HeldOutEvaluation(tree, rows, "single" if spec.is_hard else spec.selection, batch_size=1024)()
        tree.eval()
        return loss if self.prepared.source.codec.is_classes else 1 - score

    def _refit(self, history: History) -> History | None:
        """Train again on all rows, each member up to its best epoch; if interrupted, restore the weights before."""
        prepared = self.prepared
        before = copy.deepcopy(prepared.tree.state_dict())
        prepared.tree.reset_parameters(generators(prepared.seeds[1:]))
        rows = prepared.source.all_rows(prepared.device)
        try:
            return self._train(prepared.tree, rows, verbose=prepared.spec.verbose, keep_epoch=history.best_epoch)
        except KeyboardInterrupt:
            history.interrupted = True
            warnings.warn("fit was interrupted in the refit; the weights of early stopping are kept", stacklevel=4)
            prepared.tree.load_state_dict(before)
            return None
