"""Torch modules: decisions f, leaves g, branching, and the tree that joins them. All have a leading `members` axis."""

from tartree.nn.activations import ACTIVATIONS, Activation
from tartree.nn.axis_decision import AxisDecision
from tartree.nn.backbones import BackboneDecision, ConvBackbone, LayeredDecision
from tartree.nn.branching import Branching
from tartree.nn.column_mask import ColumnMask
from tartree.nn.decisions import MLPDecision, UniformDecision
from tartree.nn.factories import Axis, Backbone, Conv, Layered, Path, Pieces, Soft, Subspace
from tartree.nn.graph_capture import Predictor
from tartree.nn.leaves import ConstantLeaf, MLPLeaf
from tartree.nn.outputs import Classes, Gaussian, Output, Values
from tartree.nn.path_leaf import PathLeaf
from tartree.nn.piecewise_leaf import PieceLeaf
from tartree.nn.soft_decision import SoftDecision
from tartree.nn.sparse_decision import SparseDecision
from tartree.nn.split_decision import SplitDecision
from tartree.nn.subspace_decision import SubspaceDecision
from tartree.nn.tree import Leaves, Selection, Tree, combine

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Axis",
    "AxisDecision",
    "Backbone",
    "BackboneDecision",
    "Branching",
    "Classes",
    "ColumnMask",
    "ConstantLeaf",
    "Conv",
    "ConvBackbone",
    "Gaussian",
    "Layered",
    "LayeredDecision",
    "Leaves",
    "MLPDecision",
    "MLPLeaf",
    "Output",
    "Path",
    "PathLeaf",
    "PieceLeaf",
    "Pieces",
    "Predictor",
    "Selection",
    "Soft",
    "SoftDecision",
    "SparseDecision",
    "SplitDecision",
    "Subspace",
    "SubspaceDecision",
    "Tree",
    "UniformDecision",
    "Values",
    "combine",
]
