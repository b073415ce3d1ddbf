"""Torch modules: decisions f, leaves g, branching, and the tree that joins them. All have a leading `members` axis."""

from tartree.nn.branching import ACTIVATIONS, Branching
from tartree.nn.decisions import MLPDecision, UniformDecision
from tartree.nn.leaves import ConstantLeaf, MLPLeaf
from tartree.nn.outputs import Classes, Gaussian, Output, Values
from tartree.nn.tree import Leaves, Selection, Tree, combine

__all__ = [
    "ACTIVATIONS",
    "Branching",
    "Classes",
    "ConstantLeaf",
    "Gaussian",
    "Leaves",
    "MLPDecision",
    "MLPLeaf",
    "Output",
    "Selection",
    "Tree",
    "UniformDecision",
    "Values",
    "combine",
]
