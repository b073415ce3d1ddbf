"""Spaces of a search: named ones and those of the user, as lists of parameters of the estimator."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Parameters = dict[str, Any]
Space = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def _series(depths: Iterable[int], **fixed: Any) -> list[Parameters]:
    return [{"depth": depth, **fixed} for depth in depths]


#: The 24 structures of Tables 7 to 9 of the paper, row by row.
PAPER_SERIES: dict[str, list[Parameters]] = {
    "linear leaves, multi": _series((2, 4, 6, 8), leaf_layers=1, selection="multi"),
    "linear leaves, single": _series((2, 4, 6, 8), leaf_layers=1, selection="single"),
    "L 2, single": _series((2, 4, 6, 8), leaf_layers=2, selection="single"),
    "L 4, single": _series((2, 4, 6, 8), leaf_layers=4, selection="single"),
    "W 3, S 2, L 2, single": _series((1, 3, 5, 7), leaf_layers=2, window=3, stride=2, selection="single"),
    "D 1, L 2, single": [
        {"depth": 1, "leaf_layers": 2, "window": window, "selection": "single"} for window in (3, 7, 15, 31)
    ],
}
#: Training of the paper.
PAPER_TRAINING: Parameters = {"dropout": 0.15, "recipe": "paper"}
PAPER = [{**params, **PAPER_TRAINING} for series in PAPER_SERIES.values() for params in series]

_BOTH = ("multi", "single")  # share a training
_DEEP: Parameters = {"recipe": "deep", "dropout": 0.15}
#: Candidates to be read: linear functions, curves, and small trees that decide by few columns and have one path a row.
READABLE: list[Parameters] = [
    {"depth": 0, "leaf_layers": 1, "numeric": ["standard", "curve"]},
    {"readable": True, "depth": [1, 2, 3], "max_features": [1, 2]},
    {"readable": True, "depth": [2, 3], "max_features": 1, "leaf_layers": 0},
]
_TREES: list[Parameters] = [
    {"depth": 0, "leaf_layers": 1},
    {"depth": [3, 5], "leaf_layers": 0, "selection": _BOTH},
    {"depth": [1, 2, 4, 6], "leaf_layers": 1, "selection": _BOTH},
]
#: Trees with constant and linear leaves, and from one perceptron to sixteen, with the recipe for perceptrons. One wide
#: perceptron, or four of half its width, are about as accurate as sixteen narrow ones, with fewer leaves.
SMALL: list[Parameters] = [
    *_TREES,
    {"depth": 0, "leaf_layers": [2, 4], **_DEEP},
    {"depth": 0, "leaf_layers": 4, "hidden": 400, **_DEEP},
    {"depth": [1, 2, 4], "leaf_layers": 2, "selection": _BOTH, **_DEEP},
    {"depth": [1, 4], "leaf_layers": 4, "selection": _BOTH, **_DEEP},
    {"depth": 2, "leaf_layers": 4, "hidden": 200, "selection": _BOTH, **_DEEP},
    {"depth": 3, "leaf_layers": 4, "selection": _BOTH, "recipe": "deep", "dropout": 0.3},
    {"depth": 3, "window": 3, "stride": 2, "leaf_layers": 2, "selection": _BOTH, **_DEEP},
]
_ALL: Parameters = {
    "decision_layers": [1, 2],
    "leaf_layers": [0, 1, 2, 3, 4],
    "hidden": [32, 100],
    "dropout": [0.0, 0.15, 0.3],
    "selection": _BOTH,
    "branching": ["softmax", "sigsoftmax"],
    "recipe": ["default", "deep"],
    "learning_rate": [None, 0.0025, 0.01, 0.05],
}
#: All parameters with an effect, up to 64 leaves: thousands of candidates, from which some are drawn.
FULL: list[Parameters] = [
    {"depth": [0, 1, 2, 3, 4, 5, 6], **_ALL},
    {"depth": [1, 2, 3], "window": [3, 4], "stride": [None, 2], **_ALL},
]
SPACES = {"readable": READABLE, "small": SMALL, "paper": PAPER, "full": FULL}


def blocks_of(space: Space) -> list[dict[str, tuple[Any, ...]]]:
    """Return a space as blocks: each parameter with its choices."""
    if isinstance(space, str):
        if space not in SPACES:
            raise ValueError(
                f"space must be one of {', '.join(SPACES)}, a dict of lists or a list of dicts, got {space!r}"
            )
        space = SPACES[space]
    if not isinstance(space, Mapping | Sequence):
        raise ValueError(f"space must be one of {', '.join(SPACES)}, a dict of lists or a list of dicts, got {space!r}")
    blocks: list[Any] = [space] if isinstance(space, Mapping) else list(space)
    if not blocks or not all(isinstance(block, Mapping) for block in blocks):
        raise ValueError(f"space must be a dict of lists or a list of dicts with at least one dict, got {space!r}")
    return [{name: _choices(name, value) for name, value in block.items()} for block in blocks]


def _choices(name: str, value: Any) -> tuple[Any, ...]:
    value = value.tolist() if hasattr(value, "tolist") else value
    choices = tuple(_plain(choice) for choice in value) if isinstance(value, list | tuple | range) else (value,)
    if not choices:
        raise ValueError(f"{name} must have at least one choice in the space, got {value!r}")
    return choices


def expand(space: Space, base: Mapping[str, Any] | None = None) -> list[Parameters]:
    """Return the candidates of a space, in order and each once.

    Parameters
    ----------
    space : name, dict of lists or list of dicts
    base : mapping, optional
        Parameters that hold if the space does not name them; by default those of `TartClassifier()`.

    Returns
    -------
    list of dict

    Raises
    ------
    ValueError
        If the space is not one of these, or has a parameter without choices.

    Examples
    --------
    >>> expand({"depth": [1, 2], "selection": "multi"})
    [{'depth': 1, 'selection': 'multi'}, {'depth': 2, 'selection': 'multi'}]
    >>> len(expand("paper"))
    24
    """
    candidates: dict[str, Parameters] = {}
    blocks = blocks_of(space)
    named = _STRUCTURE.union(*blocks)
    base = {name: value for name, value in (_defaults() if base is None else base).items() if name in named}
    for block in blocks:
        for values in itertools.product(*block.values()):
            params = dict(zip(block, values, strict=True))
            candidates.setdefault(identity(params, base), params)
    return list(candidates.values())


def identity(params: Parameters, base: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal candidates: parameters without effect are left out.

    `base` are the parameters that hold if a candidate does not name them. A leaf alone has no children and nothing to
    select, and without hidden units their number has no effect. (In a single layer the stride has no effect either; the
    paper lists such a pair, which shares a training.)
    """
    whole = {**base, **params}
    unused: set[str] = set()
    if whole.get("depth") == 0:
        unused |= {"window", "stride", "decision_layers", "branching", "selection"}
    if whole.get("stride") == whole.get("window"):
        whole["stride"] = None
    if whole.get("leaf_layers") in (0, 1) and (whole.get("decision_layers") in (0, 1) or whole.get("depth") == 0):
        unused |= {"hidden", "dropout"}
    return repr(sorted((name, _plain(value)) for name, value in whole.items() if name not in unused))


#: Parameters on which the effect of others depends.
_STRUCTURE = frozenset({"depth", "window", "stride", "decision_layers", "leaf_layers"})


def _defaults() -> dict[str, Any]:
    from tartree.estimators import TartClassifier

    defaults: dict[str, Any] = TartClassifier().get_params(deep=False)
    return defaults


def _plain(value: Any) -> Any:
    """Return a number of NumPy as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value
