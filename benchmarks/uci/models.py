"""The models of the study as data: structures, recipes, and the accuracies that were published for them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from tartree import Structure, TartClassifier
from tartree.nn import Pieces
from tartree.search import PAPER_SERIES
from tartree.training import RECIPES, Recipe
from tartree.zoo import PRESETS

Means = tuple[float | None, float | None, float | None]  # large, medium, small: percent
GROUPS = ("large", "medium", "small")
NO_MEANS: Means = (None, None, None)


@dataclass(frozen=True)
class TreeModel:
    """A tree of the library; the four runs of a set are trained together, as members of one tree."""

    name: str
    label: str
    depth: int
    leaf_layers: int
    window: int = 2
    stride: int | None = None
    selection: Literal["multi", "single"] = "multi"
    decision_layers: int = 1
    leaf: Pieces | None = None  # in place of leaves of `leaf_layers`
    hidden: int = 100
    dropout: float = 0.15
    members: int = 1  # of each run; their probabilities are averaged
    recipe: Recipe = RECIPES["paper"]
    early_stopping: bool | Literal["auto", "refit"] = False
    start: Literal["torch", "he"] = "torch"  # how weights are drawn
    encoded: bool = False  # as `TartClassifier` encodes tables, else the features of the file
    published: Means = NO_MEANS

    @property
    def structure(self) -> Structure:
        # A single layer has no neighbours to share children with: one structure, whatever its stride.
        return Structure(self.depth, self.window, self.stride if self.depth > 1 else None)

    @property
    def training(self) -> tuple[Any, ...]:
        """What training depends on; models with equal values differ only by their selection, at prediction."""
        ignored = ("name", "label", "selection", "published", "window", "stride")
        return (self.structure, *(getattr(self, field.name) for field in fields(self) if field.name not in ignored))


@dataclass(frozen=True)
class EstimatorModel:
    """`TartClassifier` with its encoder and its early stopping, fitted separately in each run."""

    name: str
    label: str
    parameters: tuple[tuple[str, Any], ...]
    published: Means = NO_MEANS

    def make(self, seed: int, device: str, precision: Any = "single") -> TartClassifier:
        model = TartClassifier(**dict(self.parameters), random_state=seed, device=device)
        spec = model.spec()  # a recipe of its own would make the default another model
        return model.set_params(recipe=replace(spec.recipe, precision=precision), readable=spec.is_readable)


def _mlps() -> list[TreeModel]:
    published: dict[int, Means] = {
        1: (78.7, 78.9, 73.4),
        2: (87.8, 83.0, 76.5),
        4: (91.8, 83.0, 76.8),
        8: (91.5, 82.5, 76.0),
        16: (85.3, 78.3, 75.1),
    }
    return [TreeModel(f"mlp-{k}", f"MLP-{k}", 0, k, start="he", published=means) for k, means in published.items()]


def _series(label: str, settings: list[dict[str, Any]], published: list[Means]) -> list[TreeModel]:
    return [
        TreeModel(_name(values), f"{label}, {_width_or_depth(values)}", published=means, **values)
        for values, means in zip(settings, published, strict=True)
    ]


def _name(settings: dict[str, Any]) -> str:
    parts = [f"D{settings['depth']}", f"L{settings['leaf_layers']}"]
    if settings.get("window", 2) != 2:
        parts.append(f"W{settings['window']}" + (f"S{settings['stride']}" if "stride" in settings else ""))
    return "-".join([*parts, settings["selection"]])


def _width_or_depth(settings: dict[str, Any]) -> str:
    """Return the setting in which the models of a series differ."""
    is_wide = "stride" not in settings and settings.get("window", 2) != 2
    return f"W {settings['window']}" if is_wide else f"D {settings['depth']}"


LINEAR_MULTI = _series(
    "linear leaves, multi",
    PAPER_SERIES["linear leaves, multi"],
    [(84.6, 81.4, 75.3), (86.7, 82.1, 76.2), (88.2, 82.6, 77.0), (89.1, 82.9, 76.5)],
)
LINEAR_SINGLE = _series(
    "linear leaves, single",
    PAPER_SERIES["linear leaves, single"],
    [(84.4, 81.1, 74.7), (86.4, 81.6, 75.1), (87.8, 82.0, 75.7), (88.6, 82.2, 74.6)],
)
PERCEPTRON_2 = _series(
    "L 2, single",
    PAPER_SERIES["L 2, single"],
    [(87.4, 82.7, 76.0), (89.0, 82.6, 76.1), (90.0, 82.6, 76.0), (90.7, 82.6, 75.4)],
)
PERCEPTRON_4 = _series(
    "L 4, single",
    PAPER_SERIES["L 4, single"],
    [(92.1, 82.7, 76.0), (92.3, 82.2, 75.7), (92.1, 81.9, 75.6), (91.9, 82.0, 75.4)],
)
SHARED = _series(
    "W 3, S 2, L 2, single",
    PAPER_SERIES["W 3, S 2, L 2, single"],
    [(88.5, 83.1, 76.5), (89.6, 83.1, 76.3), (90.7, 82.9, 76.2), (91.2, 82.8, 75.8)],
)
WIDE = _series(
    "D 1, L 2, single",
    PAPER_SERIES["D 1, L 2, single"],
    [(88.9, 83.3, 75.7), (89.5, 83.3, 75.6), (90.1, 83.1, 75.4), (90.4, 83.2, 75.5)],
)
#: The 24 structures of Tables 7 to 9, with TART-A, B and C among them.
STRUCTURES = [*LINEAR_MULTI, *LINEAR_SINGLE, *PERCEPTRON_2, *PERCEPTRON_4, *SHARED, *WIDE]
#: The names of the zoo for TART-A, B and C.
ALIASES = {"tart-a": "D6-L1-multi", "tart-b": "D2-L4-single", "tart-c": "D3-L2-W3S2-single"}
MLPS = _mlps()
#: Perceptrons with the initialisation of torch instead of the paper's.
STARTS = [
    TreeModel("one-layer", "one layer, initialisation of torch", 0, 1),
    TreeModel("sixteen-layers", "sixteen layers, initialisation of torch", 0, 16),
]

_DEFAULT = TartClassifier()
DEFAULT = TreeModel(
    "default",
    "default recipe, D 4",
    4,
    _DEFAULT.leaf_layers,
    selection=_DEFAULT.selection,
    dropout=_DEFAULT.dropout,
    recipe=RECIPES["default"],
    early_stopping="auto",
)
DEFAULT_A = replace(DEFAULT, name="default-A", label="default recipe, structure of TART-A", depth=6)
ESTIMATOR = EstimatorModel("TartClassifier", "TartClassifier, default settings", ())
SOFT = EstimatorModel("not-readable", "TartClassifier(readable=False)", (("readable", False),))


def from_preset(name: str) -> TreeModel:
    """Return a model of the zoo, all four runs trained together."""
    settings = PRESETS[name].build()
    recipe = settings.get("recipe", "default")
    changes = {key: settings.pop(key) for key in ("epochs", "batch_size", "learning_rate") if key in settings}
    settings["recipe"] = replace(RECIPES[recipe] if isinstance(recipe, str) else recipe, **changes)
    defaults = {"leaf_layers": _DEFAULT.leaf_layers, "dropout": 0.0, "early_stopping": "auto"}
    return TreeModel(name, name, encoded=True, **{**defaults, **settings})


TART_MAX = from_preset("tart-max")
OURS: list[TreeModel | EstimatorModel] = [DEFAULT, DEFAULT_A, ESTIMATOR, SOFT, TART_MAX]
#: tart-max without its encoder, to measure what that changes.
UNENCODED = replace(TART_MAX, name="tart-max-unencoded", label="tart-max without encoder", encoded=False)
TREES: dict[str, TreeModel | EstimatorModel] = {
    model.name: model for model in [*STRUCTURES, *MLPS, *STARTS, *OURS, UNENCODED]
}

#: Names that stand for several models.
SELECTIONS = {
    "structures": [model.name for model in STRUCTURES],
    "mlps": [model.name for model in (*MLPS, *STARTS)],
    "ours": [model.name for model in OURS],
}
