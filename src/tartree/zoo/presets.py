"""The named models, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tartree.estimators import TartClassifier, TartRegressor


@dataclass(frozen=True)
class Preset:
    """A named model: what it is for, where it comes from, and the parameters that make it."""

    purpose: str
    source: str
    parameters: dict[str, Any] = field(default_factory=dict)


_PAPER = "Yoo and Sael 2022"
_AS_IN_PAPER = {"recipe": "paper", "early_stopping": False}

PRESETS = {
    "tart-a": Preset(
        "many linear leaves, averaged: small data, readable",
        _PAPER,
        {"depth": 6, "leaf_layers": 1, "selection": "multi", "dropout": 0.15, **_AS_IN_PAPER},
    ),
    "tart-b": Preset(
        "four perceptrons behind two decisions: large data",
        _PAPER,
        {"depth": 2, "leaf_layers": 4, "selection": "single", "dropout": 0.15, **_AS_IN_PAPER},
    ),
    "tart-c": Preset(
        "three-way decisions that share children: the balance of both",
        _PAPER,
        {
            "depth": 3,
            "window": 3,
            "stride": 2,
            "leaf_layers": 2,
            "selection": "single",
            "dropout": 0.15,
            **_AS_IN_PAPER,
        },
    ),
    "tart-max": Preset(
        "accuracy first: eight members with perceptrons as leaves",
        "this project",
        {
            "depth": 4,
            "leaf_layers": 3,
            "selection": "multi",
            "members": 8,
            "dropout": 0.3,
            "early_stopping": False,
            "recipe": "deep",
        },
    ),
}


def make(
    name: str, *, task: Literal["classification", "regression"] = "classification", **parameters: Any
) -> TartClassifier | TartRegressor:
    """An unfitted estimator by its name; keyword parameters replace those of the preset.

    Examples
    --------
    >>> from tartree import zoo
    >>> zoo.make("tart-b", random_state=0).depth
    2
    """
    if name not in PRESETS:
        raise ValueError(f"name must be one of {', '.join(PRESETS)}, however: {name!r}")
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', however: {task=}")
    estimator = TartClassifier if task == "classification" else TartRegressor
    return estimator(**{**PRESETS[name].parameters, **parameters})
