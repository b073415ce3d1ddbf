"""Named models: functions of a name that return an unfitted estimator; and trees of other libraries."""

from tartree.zoo.alternating import fit_alternating, update_leaves
from tartree.zoo.from_sklearn import from_sklearn
from tartree.zoo.imported import ImportedClassifier, ImportedRegressor
from tartree.zoo.presets import PRESETS, Preset, make, table
from tartree.zoo.to_sklearn import to_sklearn
from tartree.zoo.warming import soften, warm_start

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
