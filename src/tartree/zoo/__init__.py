"""Named models that return an unfitted estimator, warm starts from grown trees, and trees of other libraries."""

from tartree.zoo.alternation import fit_alternating, update_leaves
from tartree.zoo.interop.imported_model import ImportedClassifier, ImportedRegressor
from tartree.zoo.interop.sklearn_export import to_sklearn
from tartree.zoo.interop.sklearn_import import from_sklearn
from tartree.zoo.presets import PRESETS, Preset, make, table
from tartree.zoo.warm_starts import soften, warm_start

__all__ = [
    "PRESETS",
    "ImportedClassifier",
    "ImportedRegressor",
    "Preset",
    "fit_alternating",
    "from_sklearn",
    "make",
    "soften",
    "table",
    "to_sklearn",
    "update_leaves",
    "warm_start",
]
