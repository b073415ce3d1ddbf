"""Double-precision copies of trees for predictions on a CPU, made again only when the tree has changed."""

from __future__ import annotations

import copy
import operator
import weakref
from itertools import chain
from typing import Any, NamedTuple

from torch import Tensor

from tartree.nn import Tree


class _Copy(NamedTuple):
    tree: Tree
    held: list[Tensor]  # the tensors it was made from: while they are held, no other tensor can have their addresses
    versions: list[tuple[int, int]]
    attributes: list[Any]


# Not in the trees: copies are never pickled or saved, and are freed with their trees.
_copies: weakref.WeakKeyDictionary[Tree, _Copy] = weakref.WeakKeyDictionary()


def in_double(tree: Tree) -> Tree:
    """Return a copy of a tree in double precision, for reading only.

    The copy is kept until a weight is changed or replaced, or an attribute of a module is set. Changes that torch does
    not count, through ``.data`` or a numpy view, are not noticed.
    """
    modules = list(tree.modules())  # a walk that takes as long as a search, so once
    attributes = list(chain.from_iterable(vars(module).values() for module in modules))
    candidates = chain.from_iterable((*module._parameters.values(), *module._buffers.values()) for module in modules)
    tensors = [tensor for tensor in candidates if tensor is not None]
    versions = [(tensor.data_ptr(), tensor._version) for tensor in tensors]
    kept = _copies.get(tree)
    if (
        kept is None
        or kept.versions != versions
        or len(kept.attributes) != len(attributes)
        or not all(map(operator.is_, kept.attributes, attributes))
    ):
        kept = _Copy(copy.deepcopy(tree).double(), [tensor.detach() for tensor in tensors], versions, attributes)
        _copies[tree] = kept
    return kept.tree
