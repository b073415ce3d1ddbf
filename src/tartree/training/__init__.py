"""Training of trees: what is done (the recipe), the loop that does it, and what it leaves behind."""

from tartree.training.history import Callback, Epoch, History
from tartree.training.keeping import Keeper
from tartree.training.loop import train
from tartree.training.recipe import RECIPES, Recipe
from tartree.training.rows import LazyRows, OwnRows, Rows, TensorRows
from tartree.training.stream import StreamRows
from tartree.training.team import ALONE, Team

__all__ = [
    "ALONE",
    "RECIPES",
    "Callback",
    "Epoch",
    "History",
    "Keeper",
    "LazyRows",
    "OwnRows",
    "Recipe",
    "Rows",
    "StreamRows",
    "Team",
    "TensorRows",
    "train",
]
