"""Training of trees: what is done (the recipe), the loop that does it, and what it leaves behind."""

from tartree.training.loop import Callback, Epoch, History, train
from tartree.training.recipe import RECIPES, Recipe
from tartree.training.rows import LazyRows, Rows, TensorRows

__all__ = ["RECIPES", "Callback", "Epoch", "History", "LazyRows", "Recipe", "Rows", "TensorRows", "train"]
