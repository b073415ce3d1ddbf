"""Presets: the models of the paper's Tables 2 and 3 and its three proposals, as plain data by name."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tartree.estimators import ESTIMATORS, TartClassifier, TartRegressor
from tartree.nn import Axis, Conv, Layered, Pieces, Soft, Subspace
from tartree.training import Recipe

Task = Literal["classification", "regression"]
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Preset:
    """A named model.

    Parameters
    ----------
    purpose : str
    source : str
        Authors and year.
    parameters : dict or callable
        Parameters of the estimator, or a function of the model's options, such as the penalty of logistic regression,
        that returns them.
    decision, leaf : str
        Descriptions of f and g.
    task : {"classification", "regression"}

    Examples
    --------
    >>> from tartree import zoo
    >>> zoo.PRESETS["tart-c"].build(epochs=3)["window"]
    3
    """

    purpose: str
    source: str
    parameters: Parameters | Callable[..., Parameters] = field(default_factory=dict)
    decision: str = "linear"
    leaf: str = "linear"
    task: Task = "classification"

    def options(self) -> tuple[str, ...]:
        """Return the names of the model's options.

        Returns
        -------
        tuple of str
        """
        return tuple(inspect.signature(self.parameters).parameters) if callable(self.parameters) else ()

    def build(self, **parameters: Any) -> Parameters:
        """Return the parameters of the estimator.

        Parameters
        ----------
        **parameters
            Options of the model, and parameters that replace those of the preset.

        Returns
        -------
        dict
        """
        if not callable(self.parameters):
            return {**self.parameters, **parameters}
        options = {name: parameters.pop(name) for name in self.options() if name in parameters}
        defaults = self.parameters(**options)
        if options and "leaf" in defaults and "leaf" in parameters:
            raise ValueError(
                f"{', '.join(options)} would change the leaves of the preset, but leaf={parameters['leaf']!r} replaces "
                "them; set it on that leaf, or by set_params"
            )
        return {**defaults, **parameters}


def _logistic_regression(C: float = 1.0) -> Parameters:
    if not isinstance(C, numbers.Real) or isinstance(C, bool) or not 0 < C < float("inf"):
        raise ValueError(f"C, the inverse of the penalty, must be a positive number, got {C!r}")
    recipe = Recipe(optimizer="lbfgs", epochs=10_000, decision_decay=0.0, leaf_decay=1 / C, jitter=0.0)
    return {"depth": 0, "leaf_layers": 1, "recipe": recipe, "early_stopping": False}


def _most_accurate(
    leaf_layers: int = 4, hidden: int = 100, dropout: float = 0.15, pieces: int = 8, mixed: bool = True
) -> Parameters:
    return {
        "depth": 4,
        "leaf": Pieces(layers=leaf_layers, hidden=hidden, dropout=dropout, pieces=pieces, mixed=mixed),
        "selection": "multi",
        "members": 8,
        "early_stopping": False,
        "recipe": "deep",
    }


_PAPER = "Yoo and Sael 2022"
_AS_IN_PAPER = {"recipe": "paper", "early_stopping": False}

PRESETS = {
    "dt": Preset(
        "one feature a decision, hard; also imported from other libraries",
        "Breiman et al. 1984",
        {
            "depth": 6,
            "leaf_layers": 0,
            "selection": "single",
            "decision": Axis(),
            "recipe": Recipe(
                epochs=400, learning_rate=0.05, decision_decay=0.0, leaf_decay=0.0, jitter=0.0, loss="mixture"
            ),
        },
        decision="indicator of one feature",
        leaf="constant",
    ),
    "sdt": Preset(
        "one soft tree that can be read: linear filters, constant leaves",
        "Frosst and Hinton 2017",
        {
            "depth": 6,
            "leaf_layers": 0,
            "selection": "single",
            "decision": Soft(),
            "recipe": Recipe(learning_rate=0.01, decision_decay=0.3, leaf_decay=0.0, jitter=0.0, balance=0.1),
        },
        decision="sigmoid with inverse temperature",
        leaf="constant",
    ),
    "ndf": Preset(
        "a forest of perceptrons on random parts of the features",
        "Rota Bulò and Kontschieder 2014",
        {
            "depth": 4,
            "leaf_layers": 0,
            "selection": "multi",
            "members": 10,
            "decision": Subspace(share=0.5, layers=2, hidden=16),
            "recipe": Recipe(learning_rate=0.01, decision_decay=0.3, leaf_decay=0.01, jitter=0.0, loss="mixture"),
            "early_stopping": False,
        },
        decision="perceptron on a random subspace",
        leaf="constant",
    ),
    "dndf": Preset(
        "a forest above one convolutional network: thousands of images",
        "Kontschieder et al. 2015",
        {
            "depth": 5,
            "leaf_layers": 0,
            "selection": "multi",
            "members": 5,
            "decision": Conv(),
            "numeric": "plain",  # pixels as they are
            "recipe": Recipe(
                epochs=60,
                batch_size=128,  # so that a small table has some steps too
                learning_rate=0.002,
                decision_decay=0.3,
                leaf_decay=0.0,
                jitter=0.0,
                loss="mixture",
            ),
            "early_stopping": False,
        },
        decision="shared CNN, linear for each node",
        leaf="constant",
    ),
    "nrf": Preset(
        "regression with uncertainty; deeper nodes see more convolutions",
        "Roy and Todorovic 2016",
        {
            "depth": 3,
            "leaf_layers": 0,
            "selection": "multi",
            "members": 4,
            "decision": Layered(channels=4),
            "recipe": Recipe(learning_rate=0.01, decision_decay=1.5, leaf_decay=0.01, loss="mixture"),
            "early_stopping": False,
        },
        decision="one convolution more a layer",
        leaf="constant Gaussian",
        task="regression",
    ),
    "lr": Preset(
        "logistic regression, to the optimum, of standardised columns",
        "Cox 1958",
        _logistic_regression,
        decision="none",
    ),
    "mlp": Preset(
        "a perceptron without a tree",
        "Rumelhart et al. 1986",
        {"depth": 0, "leaf_layers": 3, "dropout": 0.15, "recipe": "deep"},
        decision="none",
        leaf="perceptron",
    ),
    "experts": Preset(
        "the mean of several perceptrons",
        "Jacobs et al. 1991",
        {"depth": 3, "decision_layers": 0, "leaf_layers": 2, "dropout": 0.15, "recipe": "deep"},
        decision="none: an even split",
        leaf="perceptron",
    ),
    "tree-1": Preset(
        "linear decisions, constant leaves: the readable end",
        _PAPER,
        {"depth": 6, "leaf_layers": 0},
        leaf="constant",
    ),
    "tree-2": Preset(
        "perceptrons decide, linear leaves",
        _PAPER,
        {"depth": 4, "decision_layers": 2, "leaf_layers": 1, "hidden": 32, "dropout": 0.15, "recipe": "deep"},
        decision="perceptron",
    ),
    "tree-3": Preset(
        "linear decisions, perceptrons as leaves",
        _PAPER,
        {"depth": 3, "leaf_layers": 2, "dropout": 0.15, "recipe": "deep"},
        leaf="perceptron",
    ),
    "tart-a": Preset(
        "many linear leaves, averaged: small data, readable",
        _PAPER,
        {"depth": 6, "leaf_layers": 1, "selection": "multi", "dropout": 0.15, **_AS_IN_PAPER},
    ),
    "tart-b": Preset(
        "four perceptrons behind two decisions: large data",
        _PAPER,
        {"depth": 2, "leaf_layers": 4, "selection": "single", "dropout": 0.15, **_AS_IN_PAPER},
        leaf="perceptron",
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
        leaf="perceptron",
    ),
    "tart-max": Preset(
        "accuracy first: eight members with perceptrons as leaves, half of which see numbers in pieces",
        "this project",
        _most_accurate,
        leaf="perceptron",
    ),
}


def make(name: str, *, task: Task | None = None, **parameters: Any) -> TartClassifier | TartRegressor:
    """Return an unfitted estimator by its name.

    Parameters
    ----------
    name : str
        A name of `PRESETS`; `tartree zoo` lists them.
    task : {"classification", "regression"}, optional
        By default regression for "nrf" and classification for all others.
    **parameters
        Parameters of the estimator, which replace those of the preset, and options of the model: ``C`` of "lr";
        ``leaf_layers``, ``hidden``, ``dropout``, ``pieces`` and ``mixed`` of "tart-max", for its leaves.

    Returns
    -------
    TartClassifier or TartRegressor

    Examples
    --------
    >>> from tartree import zoo
    >>> zoo.make("tart-b", random_state=0).depth
    2
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"name must be one of {', '.join(PRESETS)}, got {name!r}")
    if task not in ("classification", "regression", None):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    preset = PRESETS[name]
    estimator = ESTIMATORS[task or preset.task]
    settings = preset.build(**parameters)
    names = inspect.signature(estimator).parameters
    if unknown := [name for name in settings if name not in names]:
        raise TypeError(
            f"parameters must be those of {estimator.__name__}"
            + (f" or {', '.join(preset.options())}" if preset.options() else "")
            + f", got {', '.join(unknown)}"
        )
    return estimator(**settings)


def _decision_layers(model: TartClassifier | TartRegressor) -> int | str:
    """Return H, from the parameters or the record that makes the decisions."""
    if model.decision is None:
        return int(model.decision_layers)
    if isinstance(model.decision, Layered):  # a node of layer d has d + 1 convolutions below its linear map
        depth = int(model.depth)  # of a preset always a number
        return f"2 to {depth + 1}" if depth > 1 else 2
    layers: int | str = getattr(model.decision, "layers", "own")
    return layers


def table() -> list[dict[str, Any]]:
    """Return one record a model: name, f, g, W, S, D, H, L, members, selection, purpose and source.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> from tartree import zoo
    >>> next(row["D"] for row in zoo.table() if row["name"] == "tart-c")
    3
    """
    rows = []
    for name, preset in PRESETS.items():
        model = make(name)
        window = model.window if model.depth else None
        rows.append(
            {
                "name": name,
                "f": preset.decision,
                "g": preset.leaf,
                "W": window,
                "S": window and (model.stride or window),
                "D": model.depth,
                "H": _decision_layers(model) if model.depth else None,
                "L": getattr(model.leaf, "layers", model.leaf_layers),
                "members": model.members,
                "selection": model.selection if model.depth else None,
                "purpose": preset.purpose,
                "source": preset.source,
            }
        )
    return rows
