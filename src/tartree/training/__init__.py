"""Training of trees: what is done (the recipe), the loop that does it, and what it leaves behind."""

from tartree.training.batches import LazyRows, MemberRows, Rows, TensorRows
from tartree.training.checkpoint import CheckpointStore
from tartree.training.history import Callback, Epoch, History
from tartree.training.loop import train
from tartree.training.recipe import RECIPES, Recipe
from tartree.training.stream import StreamRows
from tartree.training.worker_group import SINGLE_WORKER, WorkerGroup

__all__ = [
    "RECIPES",
    "SINGLE_WORKER",
    "Callback",
    "CheckpointStore",
    "Epoch",
    "History",
    "LazyRows",
    "MemberRows",
    "Recipe",
    "Rows",
    "StreamRows",
    "TensorRows",
    "WorkerGroup",
    "train",
]
