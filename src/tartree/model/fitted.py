"""FittedModel: encoder, tree, target codec, selection and provenance as one typed value."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from torch import Tensor

from tartree.model.memory_source import is_large_map
from tartree.model.precision import in_double
from tartree.model.reading_size import ReadingSize, measure
from tartree.model.records import Record
from tartree.model.sample import Sample
from tartree.model.target import ClassCodec, TargetCodec, Task, ValueCodec
from tartree.nn import Selection, Tree
from tartree.nn.best_leaf import best_leaf
from tartree.nn.paths import hard_paths
from tartree.structure import Structure
from tartree.table import Column, Feature
from tartree.table.parquet import as_parquet, is_parquet
from tartree.table.row_error import naming
from tartree.training import History
from tartree.training.stream import prefetch

#: Elements of the largest tensor of a prediction, at most, on a CPU and elsewhere.
CHUNK, LARGE_CHUNK = 2**23, 2**26


class Encoder(Protocol):
    """What a model asks of its encoder: that of a table, or that of an imported model."""

    @property
    def n_features_in_(self) -> int: ...

    @property
    def columns_(self) -> Sequence[Column]: ...

    @property
    def features_(self) -> Sequence[Feature]: ...

    def transform(self, X: Any) -> NDArray[Any]: ...

    def inverse_transform(self, encoded: Any) -> Any: ...

    def get_feature_names_out(self) -> NDArray[np.object_]: ...


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where a model comes from.

    Parameters
    ----------
    settings : dict
        Arguments of `Tree.build` that made the tree.
    history, refit_history : History or None
        Losses by epoch; None for a model from a file.
    is_streamed : bool
        Whether the rows were streamed from files.
    target_name : str or None
    sample : Sample or None
        Training rows, for importances; None after a file was read.
    importances : ndarray of shape (columns,) or None
    certificate, hardening : Record or None
        What `simplify` and `harden` changed.
    temperature : float or None
        Of the sigmoids at the start, for a warm start from a grown tree.

    Examples
    --------
    >>> Provenance(target_name="price").target_name
    'price'
    """

    settings: dict[str, Any] = field(default_factory=dict)
    history: History | None = None
    refit_history: History | None = None
    is_streamed: bool = False
    target_name: str | None = None
    sample: Sample | None = None
    importances: NDArray[np.float64] | None = None
    certificate: Record | None = None
    hardening: Record | None = None
    temperature: float | None = None


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model that predicts, is saved, loaded and moved between devices.

    Parameters
    ----------
    encoder : Encoder
        From a table to features.
    tree : Tree
        On the device where predictions are computed.
    codec : TargetCodec
        From labels or values to training targets, and back.
    selection : {"multi", "single"}
        Whether all leaves predict or the one of the largest arrival.
    provenance : Provenance

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=2, epochs=5, random_state=0).fit(X, y).model_
    >>> model.is_classifier, model.structure.n_leaves, model.predict_proba(X).shape
    (True, 4, (150, 3))
    """

    encoder: Encoder
    tree: Tree
    codec: TargetCodec
    selection: Selection = "multi"
    provenance: Provenance = field(default_factory=Provenance)

    # What it is

    @property
    def task(self) -> Task:
        """Kind of the target."""
        return self.codec.task

    @property
    def is_classifier(self) -> bool:
        """Whether classes are predicted."""
        return self.codec.is_classes

    @property
    def classes(self) -> NDArray[Any]:
        """Labels in order, (classes,)."""
        if not isinstance(self.codec, ClassCodec):
            raise AttributeError("a regression has no classes")
        return self.codec.classes

    @property
    def structure(self) -> Structure:
        """Geometry of the tree."""
        return self.tree.structure

    @property
    def device(self) -> torch.device:
        """Device of the tree."""
        return next((p.device for p in self.tree.parameters()), torch.device("cpu"))

    @property
    def n_members(self) -> int:
        """Number of trees side by side."""
        return next((len(p) for p in self.tree.parameters()), int(getattr(self.tree.decision, "members", 1)))

    @property
    def n_outputs(self) -> int:
        """Number of classes or target columns."""
        return self.tree.output.n_targets

    @property
    def n_parameters(self) -> int:
        """Number of trained weights of all members."""
        return sum(p.numel() for p in self.tree.parameters())

    @property
    def reading_size(self) -> ReadingSize:
        """Leaves, columns of a decision and numbers to print."""
        return measure(self.tree, self.encoder.features_, self.n_members)

    @property
    def target_name(self) -> str | None:
        """Name of the target column."""
        return self.provenance.target_name

    @property
    def column_names(self) -> list[str]:
        """Names of the table's columns, "x0", "x1", ... if it had none."""
        unnamed = [f"x{k}" for k in range(self.encoder.n_features_in_)]
        return [str(name) for name in getattr(self.encoder, "feature_names_in_", unnamed)]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Class labels, or names of the target columns."""
        return self.codec.output_names(self.target_name)

    @property
    def target_scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Center and scale of the outputs, (outputs,) each: 0 and 1 for probabilities."""
        return self.codec.scaling

    @property
    def function_scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Center and scale of the functions of leaves that texts show, (functions,) each: 0 and 1 for classes."""
        return self.codec.function_scaling

    @property
    def is_grown(self) -> bool:
        """Whether the structure is that of a tree grown elsewhere, which no parameters describe."""
        return self.provenance.temperature is not None and not self.structure.is_regular

    @property
    def training_rows(self) -> tuple[Tensor, NDArray[np.float64] | None] | None:
        """Encoded training rows, float64 (rows, features), and their weights; None if none were kept."""
        sample = self.provenance.sample
        if sample is None:
            return None
        return sample.x.cpu().double(), None if sample.weight is None else sample.weight.double().numpy()

    # Other models from this one

    def record(self, **changes: Any) -> FittedModel:
        """Return the model with some entries of its provenance replaced.

        Parameters
        ----------
        **changes
            Fields of `Provenance` by name.

        Returns
        -------
        FittedModel
        """
        return replace(self, provenance=replace(self.provenance, **changes))

    def with_tree(self, tree: Tree) -> FittedModel:
        """Return a model around a copy of another tree, in single precision on the same device.

        Importances, certificate and hardening of the present tree are dropped.

        Parameters
        ----------
        tree : Tree

        Returns
        -------
        FittedModel
        """
        copied = copy.deepcopy(tree).float().to(self.device).eval().requires_grad_(True)
        return replace(self, tree=copied).record(importances=None, certificate=None, hardening=None)

    def to(self, device: torch.device | str) -> FittedModel:
        """Return the model with its tree on a device; itself if it is there already.

        Parameters
        ----------
        device : torch.device or str

        Returns
        -------
        FittedModel
        """
        device = torch.device(device)
        if all(parameter.device == device for parameter in self.tree.parameters()):
            return self
        return replace(self, tree=copy.deepcopy(self.tree).to(device))

    def on_cpu(self) -> FittedModel:
        """Return the model on the CPU, where predictions are in double precision, as explanations are.

        On another device they are in single precision: for a row at a boundary, page and prediction would disagree.

        Returns
        -------
        FittedModel
        """
        return self.to("cpu")

    def double_tree(self) -> Tree:
        """Return a copy of the tree in double precision on the CPU, without gradients.

        Returns
        -------
        Tree
        """
        return copy.deepcopy(self.tree).cpu().double().eval().requires_grad_(False)

    # Rows

    def encode(self, X: Any) -> Tensor:
        """Encode rows in double precision on the CPU, (rows, features).

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        Tensor of shape (rows, features)
        """
        return torch.from_numpy(self.encoder.transform(X)).double()

    def chunks(self, X: Any) -> Iterator[tuple[Tree, Tensor]]:
        """Yield the tree to apply and encoded rows in chunks that keep memory small.

        On a CPU both are in double precision: in single precision the last digits of a row's result would depend on
        the rows beside it. `X` may be a table in files.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Yields
        ------
        tuple of Tree and Tensor
            Tensors are (rows, features).
        """
        device = self.device  # once: it walks over the parameters, which takes long beside one row
        on_cpu = device.type == "cpu"
        tree, dtype = (in_double(self.tree), torch.float64) if on_cpu else (self.tree, torch.float32)
        for chunk in self.encoded_chunks(X, self._chunk_rows(device)):
            yield tree, chunk.to(device, dtype)

    @property
    def chunk_rows(self) -> int:
        """Number of rows whose prediction keeps memory small."""
        return self._chunk_rows(self.device)

    def _chunk_rows(self, device: torch.device) -> int:
        most = CHUNK if device.type == "cpu" else LARGE_CHUNK
        return max(64, most // (self.tree.width * self.n_members))

    def encoded_chunks(self, X: Any, size: int) -> Iterator[Tensor]:
        """Yield encoded rows, (at most `size`, features).

        Parameters
        ----------
        X : table of shape (rows, columns), or in files
        size : int
            The most rows of a chunk.

        Yields
        ------
        Tensor of shape (rows, features)
        """
        if is_parquet(X):
            yield from self._file_chunks(X, size)
        elif is_large_map(X):
            yield from (self._encode(X[start : start + size]) for start in range(0, len(X), size))
        else:
            yield from self._encode(X).split(size)

    def _encode(self, X: Any) -> Tensor:
        return torch.from_numpy(self.encoder.transform(X))

    def _file_chunks(self, X: Any, size: int) -> Iterator[Tensor]:
        """Yield encoded rows of a table in files, read by a thread in the background."""
        names = getattr(self.encoder, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                "a model must know the names of its columns to find them in files, but was fitted without names; "
                "give the rows as an array"
            )
        table = as_parquet(X, names.tolist())

        def encoded() -> Iterator[Tensor]:
            for file, n_before, batch in table.scan(piece_rows=min(size, 2**16)):
                with naming(table.files[file], range(n_before, n_before + batch.num_rows)):
                    rows = self._encode(batch)
                yield rows
            if not table.blocks:
                yield self._encode(table.schema.empty_table())

        with closing(prefetch(encoded(), 2)) as rows:
            yield from rows

    # Predictions

    @torch.no_grad()
    def predict_members(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the predictions of each member in training units, chunk by chunk, (members, rows, ...).

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Yields
        ------
        ndarray of shape (members, rows, ...)
        """
        for tree, x in self.chunks(X):
            yield tree.predict(x, self.selection).double().cpu().numpy()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class, (rows, classes): the mean over the members.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return np.concatenate(list(self._probabilities(X)))

    def _probabilities(self, X: Any) -> Iterator[NDArray[np.float64]]:
        for members in self.predict_members(X):
            probabilities: NDArray[np.float64] = members.mean(axis=0)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            yield probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class, (rows,), or the mean, (rows,) or (rows, targets).

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Returns
        -------
        ndarray of shape (rows,) or (rows, targets)
        """
        if not self.is_classifier:
            return self._predict_means(X)
        small = np.min_scalar_type(len(self.classes))  # one index a row until all rows are predicted
        codes = [probabilities.argmax(axis=1).astype(small) for probabilities in self._probabilities(X)]
        predicted: NDArray[Any] = self.classes[np.concatenate(codes)]
        return predicted

    def _predict_means(self, X: Any) -> NDArray[np.float64]:
        codec, n_targets = self.value_codec, self.n_outputs
        means = np.concatenate([members.mean(axis=0)[..., :n_targets] for members in self.predict_members(X)])
        values = codec.decode_means(means)
        return values[:, 0] if codec.one_target else values

    def predict_moments(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict means and standard deviations in units of the target, (rows,) or (rows, targets).

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Returns
        -------
        tuple of two ndarray of shape (rows,) or (rows, targets)
        """
        codec, means, deviations = self.value_codec, [], []
        self._check_spread()
        for moments in self.predict_members(X):  # (members, rows, 2 targets)
            mean, square = np.split(moments.mean(axis=0), 2, axis=-1)
            means.append(codec.decode_means(mean))
            deviations.append(codec.decode_deviations(np.sqrt(np.maximum(square - np.square(mean), 0.0))))
        first, second = np.concatenate(means), np.concatenate(deviations)
        return (first[:, 0], second[:, 0]) if codec.one_target else (first, second)

    @torch.no_grad()
    def predict_quantiles(self, X: Any, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict quantiles of each row's distribution, (rows, quantiles) or (rows, quantiles, targets).

        Parameters
        ----------
        X : table of shape (rows, columns), or in files
        levels : ndarray of shape (quantiles,)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (rows, quantiles) or (rows, quantiles, targets)
        """
        codec, parts = self.value_codec, []
        self._check_spread()
        for tree, x in self.chunks(X):
            arrival, leaf_outputs = tree(x)
            if self.selection == "single":
                arrival = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
            quantiles = codec.output.quantiles(arrival, leaf_outputs, torch.from_numpy(levels).to(arrival))
            parts.append(quantiles.cpu())
        values = codec.decode_quantiles(torch.cat(parts).double().numpy())
        return values[..., 0] if codec.one_target else values

    def _check_spread(self) -> None:
        if not self.codec.output.has_spread:
            raise TypeError(f"the leaves must hold a spread, got {self.codec.output}")

    @property
    def value_codec(self) -> ValueCodec:
        """The codec of a regression."""
        if not isinstance(self.codec, ValueCodec):
            raise TypeError(f"values are predicted by a regression, got a model for {self.task}")
        return self.codec

    @torch.no_grad()
    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the node of the leaf with the largest arrival: (rows,), or (rows, members) with several members.

        Nodes are numbered layer by layer from the root, 0.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Returns
        -------
        ndarray of shape (rows,) or (rows, members)
        """
        first_leaf = sum(self.structure.widths[:-1])
        leaves = [best_leaf(tree, x)[0].cpu() for tree, x in self.chunks(X)]
        nodes = torch.cat(leaves, dim=1).numpy().T + first_leaf
        return nodes if nodes.shape[1] > 1 else nodes[:, 0]

    @torch.no_grad()
    def decision_path(self, X: Any) -> Any:
        """Return the nodes on the most probable path to the leaf of `apply`, a sparse indicator matrix (rows, nodes).

        With several members their nodes are side by side, and a second array holds where those of each begin.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files

        Returns
        -------
        sparse matrix of shape (rows, nodes)
            With several members a pair of it and of the first node of each.
        """
        structure = self.structure
        offsets = np.concatenate([[0], np.cumsum(structure.widths)])
        parts = []
        for tree, x in self.chunks(X):
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


@runtime_checkable
class HasModel(Protocol):
    """An estimator around a fitted model.

    Examples
    --------
    >>> from tartree import TartClassifier
    >>> hasattr(TartClassifier, "with_model")
    True
    """

    @property
    def model_(self) -> FittedModel: ...

    def with_model(self, model: FittedModel) -> Self: ...


Model = TypeVar("Model", bound=FittedModel | HasModel)


def fitted_model(source: FittedModel | HasModel) -> FittedModel:
    """Return the model of a fitted estimator, or the model itself.

    Parameters
    ----------
    source : FittedModel or estimator

    Returns
    -------
    FittedModel

    Raises
    ------
    NotFittedError
        If the estimator has not been fitted.
    TypeError
        If it is not an estimator of this library.

    Examples
    --------
    >>> from tartree import TartClassifier
    >>> model = TartClassifier(depth=1, epochs=1).fit([[0.0], [1.0]], ["a", "b"])
    >>> fitted_model(model).classes.tolist()
    ['a', 'b']
    """
    if isinstance(source, FittedModel):
        return source
    name = type(source).__name__
    if not hasattr(type(source), "model_"):
        raise TypeError(f"a fitted TartClassifier or TartRegressor is required, got {name}, which is no tartree model")
    model: FittedModel | None = getattr(source, "model_", None)
    if model is None:
        raise NotFittedError(f"a fitted TartClassifier or TartRegressor is required, got {name}; call fit first")
    return model


def like(source: Model, model: FittedModel) -> Model:
    """Return a model in the form of its source: a FittedModel for one, an estimator for an estimator.

    Parameters
    ----------
    source : FittedModel or estimator
    model : FittedModel

    Returns
    -------
    FittedModel or estimator
        Of the type of `source`, around `model`.

    Examples
    --------
    >>> from tartree import TartClassifier
    >>> source = TartClassifier(depth=1, epochs=1).fit([[0.0], [1.0]], ["a", "b"])
    >>> type(like(source, fitted_model(source))).__name__
    'TartClassifier'
    """
    return model if isinstance(source, FittedModel) else source.with_model(model)  # type: ignore[return-value]
