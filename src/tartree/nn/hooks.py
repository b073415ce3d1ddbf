"""Whether forward hooks wait on the parts of a tree: fast ways that do not call those parts must then give way."""

from __future__ import annotations

from typing import Any

from torch import nn


def has_hooks(tree: nn.Module) -> bool:
    """Whether the tree, its parts or theirs have forward hooks."""
    parts: Any = tree._modules.values()  # modules' own ways to what they hold take long, beside a prediction of one row
    modules = [tree, *parts, *(module for part in parts for module in part._modules.values() if module is not None)]
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)
