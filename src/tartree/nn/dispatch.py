"""Which fast path runs, for training and for prediction: one function a question, all of its conditions in it.

Fast paths compute what the modules of a tree compute, without calling all of them: none runs on a tree with forward
hooks. The questions about tensors alone are answered in `tartree.ops.backend`.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn

from tartree.nn.decisions import MLPDecision
from tartree.nn.leaf_search import Searcher
from tartree.nn.leaves import ConstantLeaf, MLPLeaf
from tartree.nn.outputs import Classes, Output
from tartree.nn.piecewise_leaf import PieceLeaf
from tartree.nn.products import GroupedMLP
from tartree.ops import backend

if TYPE_CHECKING:
    from tartree.nn.tree import Tree

#: Multiplications and additions of a forward pass below which a step takes one thread: waiting threads spin, and where
#: other programs need the cores, two took eight times as long as one.
SMALL_STEP = 500_000_000
#: Elements of all hidden units of a layer below which one block would do, and autograd takes no longer.
FEW_UNITS = 2**19
#: Rough microseconds on a CPU, to choose between paths to the same result.
ROW = 5.0  # a row searched alone
VISIT, OTHER_VISIT = 1.5, 8.0  # a node that it visits, linear and binary or not
BLOCK = 250.0  # a block of nodes for some rows
PASS, LAYER = 100.0, 8.0  # all nodes at once: to begin with, and for each layer
READ, PRODUCT, WALK = 5e-5, 6e-6, 1.5e-3  # of weights, a byte read and a byte multiplied; a branch of one row
MULTIPLY, ONE_LEAF = 2.5e-5, 25.0  # a multiplication for all leaves at once; one leaf for its rows
#: A search of a row is given up after this fraction of what a look at all its nodes costs.
PATIENCE = 0.2
#: Fraction of the cost of all nodes up to which a search is worth it.
WORTH = 0.7

GradientPath = Literal["fused", "blocks", "native", "autograd"]
SearchPath = Literal["all", "rows", "blocks"]


def has_hooks(tree: nn.Module) -> bool:
    """Whether forward hooks are registered on the tree, its parts or theirs."""
    parts: Any = tree._modules.values()  # children() takes long, beside a prediction of one row
    modules = [tree, *parts, *(module for part in parts for module in part._modules.values() if module is not None)]
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


# Training


def gradient_path(tree: Tree, x: Tensor, *, loss: str = "expected", balance: float = 0.0) -> GradientPath:
    """How the gradient of a batch is computed.

    "fused" and "native" go from logits to the gradient of Eq. 4 in one pass, on a GPU and on a CPU; "blocks" computes
    perceptron leaves on a CPU a few at a time; "autograd" is for everything else.
    """
    if loss != "expected" or balance or has_hooks(tree):
        return "autograd"
    if fuses(tree, x):
        return "fused"
    if computes_leaves_in_blocks(tree.leaf, x):
        return "blocks"
    is_native = tree.structure.is_binary and tree.structure.depth and tree.branching.is_plain and x.device.type == "cpu"
    return "native" if is_native else "autograd"


def fuses(tree: Tree, x: Tensor) -> bool:
    """Whether the path from logits to classes can be one kernel for such input."""
    return (
        x.device.type == "cuda"
        and tree.branching.is_plain
        and isinstance(tree.output, Classes)
        and not has_hooks(tree)
        and backend.takes_kernels(x, tree.structure, tree.output.n_targets)
        # Rows may be shared by all members. The first parameter has the members axis.
        and next((len(p) for p in tree.parameters() if p.dim()), 1) <= backend.MAX_PROGRAMS
    )


def computes_leaves_in_blocks(leaf: nn.Module, x: Tensor) -> TypeGuard[MLPLeaf | PieceLeaf]:
    """Whether leaves are better computed a few at a time for such input, on a CPU."""
    if not isinstance(leaf, MLPLeaf | PieceLeaf) or type(leaf) not in (MLPLeaf, PieceLeaf):  # nor a subclass
        return False
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return False
    mlp = leaf.mlp
    if len(mlp.weights) < 2 or mlp.weights[0].dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    if not all(parameter.requires_grad for parameter in mlp.parameters()):
        return False
    n_units: int = mlp.weights[0].shape[0] * mlp.weights[0].shape[1] * x.shape[-2]
    return n_units > FEW_UNITS


def counts_by_class(output: Output, leaf_logits: Tensor) -> TypeGuard[Classes]:
    """Whether the loss is computed from the arrival of each class at each leaf: constant leaves, (members, 1, ...)."""
    return isinstance(output, Classes) and leaf_logits.shape[1] == 1


def is_small_step(tree: Tree, n_rows: int) -> bool:
    """Whether a training step takes one thread: more would wait for each other, the longer the busier the machine."""
    return 2 * n_rows * sum(p.numel() for p in tree.parameters()) < SMALL_STEP


def captures_training(tree: Tree, rows: Tensor, *, resumable: bool = False) -> bool:
    """Whether steps, and evaluations of held-out rows, are replays of a CUDA graph; `resumable` runs never are."""
    return not resumable and rows.device.type == "cuda" and backend.has_triton() and is_capturable(tree)


# Prediction


def captures_prediction(tree: Tree, rows: Tensor) -> bool:
    """Whether predictions of batches of one size are replays of a CUDA graph."""
    return rows.device.type == "cuda" and is_capturable(tree)


def is_capturable(tree: Tree) -> bool:
    """Whether a tree can be part of a CUDA graph: it never waits for the GPU.

    Modules of this library and of torch can. A decision or leaf of the user's own is captured if its class has
    ``capturable = True``. Modules with forward hooks are not, since a replay would not call them.
    """
    return tree.branching.activation.is_capturable and all(_is_capturable_module(module) for module in tree.modules())


def _is_capturable_module(module: nn.Module) -> bool:
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    home = type(module).__module__
    return home.startswith(("tartree.nn.", "torch.nn.")) or getattr(module, "capturable", False) is True


def adds_bias_later(module: nn.Module) -> TypeGuard[MLPDecision | MLPLeaf]:
    """Whether a decision or leaf returns its product and its bias apart, by `parts`; a subclass may do otherwise."""
    return isinstance(module, MLPDecision | MLPLeaf) and type(module).forward in (MLPDecision.forward, MLPLeaf.forward)


def joins_products(tree: Tree, x: Tensor) -> bool:
    """Whether one product makes the logits and the leaves of a prediction: both linear, one member."""
    f, g = tree.decision, tree.leaf
    if torch.is_grad_enabled() or type(f) is not MLPDecision or type(g) is not MLPLeaf or x.dim() != 2:
        return False
    return len(f.mlp.weights) == len(g.mlp.weights) == len(f.mlp.weights[0]) == 1


# The best leaf

_searchers: weakref.WeakKeyDictionary[Tree, Searcher] = weakref.WeakKeyDictionary()


class SearchPlan(NamedTuple):
    """How the best leaves of a batch are found.

    "all" looks at all nodes, "rows" searches row by row and gives a row up after `budget` nodes, "blocks" searches by
    blocks of nodes.
    """

    path: SearchPath
    budget: int


def searcher_of(tree: Tree, x: Tensor) -> Searcher | None:
    """Return the searcher of a tree, or None if its best leaf is not searched for.

    It is in inference (eval, without gradients) on a CPU, for a tree whose nodes have one parent each (a stride equal
    to the window, or an irregular tree), with softmax branching and logits from weights of each node: linear decisions,
    or perceptrons that no two nodes share.
    """
    if tree.training or torch.is_grad_enabled() or torch.compiler.is_compiling() or x.device.type != "cpu":
        return None
    if has_hooks(tree):
        return None
    searcher = _searchers.get(tree)
    if searcher is None or not searcher.sees(tree):
        searcher = _searchers[tree] = Searcher(tree)
    return searcher if searcher.takes(x) and x.shape[-2] else None


def search_plan(searcher: Searcher, batch: int) -> SearchPlan:
    """Choose how the best leaves of a batch are found."""
    if batch not in searcher.plans:  # remembered for one size: most calls have rows in chunks of one
        searcher.plans = {batch: _make_plan(searcher, batch)}
    plan: SearchPlan = searcher.plans[batch]
    return plan


def _make_plan(searcher: Searcher, batch: int) -> SearchPlan:
    all_nodes, rows, blocks = _costs(searcher, batch)
    budget = _budget(searcher, all_nodes / batch)
    if min(rows, blocks) > WORTH * all_nodes:
        return SearchPlan("all", budget)
    return SearchPlan("rows" if rows <= blocks else "blocks", budget)


def _costs(searcher: Searcher, batch: int) -> tuple[float, float, float]:
    """Return the cost of all nodes, of a search row by row, and by blocks, if a path and a little is enough."""
    structure = searcher.structure
    bytes_read = sum(w[0].nbytes for w in searcher.weights)
    row = bytes_read * PRODUCT + structure.n_branches * WALK
    all_nodes = PASS + LAYER * structure.depth + searcher.members * (bytes_read * READ + batch * row)
    visit = (VISIT if searcher.binary else OTHER_VISIT) + bytes_read / structure.n_decisions * READ / 4
    rows = searcher.members * batch * (ROW + 2 * structure.depth * visit)
    blocks = math.inf
    if structure.is_regular and searcher.linear and structure.depth > 3:
        n_blocks = structure.window ** (structure.depth // 2)
        lower = structure.window ** (structure.depth // 2 - structure.depth)
        blocks = searcher.members * (min(batch, 2 * n_blocks) * BLOCK + batch * row * (1 / n_blocks + 2 * lower))
    return all_nodes, rows, blocks


def _budget(searcher: Searcher, all_nodes: float) -> int:
    """Return the nodes that a search of one row may visit, from the microseconds that all nodes of a row take."""
    visit = VISIT if searcher.binary else OTHER_VISIT
    least = 32 if searcher.binary else 2 * searcher.structure.depth + 4
    return max(least, int(PATIENCE * all_nodes / searcher.members / visit))


def searches_one_row(searcher: Searcher, leaf: nn.Module, x: Tensor) -> bool:
    """Whether the best leaf is that of one row, one tree and constant leaves: tensors would take longer than it."""
    return x.shape[-2] == searcher.members == 1 and searcher.binary and type(leaf) is ConstantLeaf


def computes_chosen_leaves(leaf: nn.Module, x: Tensor) -> TypeGuard[MLPLeaf]:
    """Whether perceptron leaves are computed only for the rows that chose them, rather than all for all rows."""
    if type(leaf) is not MLPLeaf or type(leaf.mlp) is not GroupedMLP:
        return False
    multiplications: int = x.shape[-2] * sum(weight.numel() for weight in leaf.mlp.weights)
    return multiplications * MULTIPLY > len(leaf.mlp.sizes) * ONE_LEAF
