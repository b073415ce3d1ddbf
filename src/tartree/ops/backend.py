"""Which backend computes: fast paths for tensors, one function a question.

`tartree.nn.dispatch` answers the questions about whole trees and builds on these.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import logging
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from tartree.ops.scratch import is_worth_keeping
from tartree.structure import Structure

Backend = Literal["auto", "fused", "native", "reference"]

KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_CLASSES = 128  # of a block in registers
MAX_LEVELS = 24
MAX_PROGRAMS = 2**16 - 1  # along the second and the third axis of a launch
MAX_ELEMENTS = 2**31  # of one member, which kernels count in 32 bits
MAX_CHILDREN = 8  # a kernel for more takes longer to compile than it ever saves: half a minute for 31
MAX_UNITS = 2**31  # up to which random numbers are counted
LOG = logging.getLogger("tartree")


def choose_backend(backend: Backend, logits: Tensor, structure: Structure, *, layers: bool) -> Backend:
    """Resolve "auto": the kernels if they take these logits, else the native backend."""
    if backend != "auto":
        return backend
    is_fused = not layers and takes_kernels(logits, structure) and not torch.compiler.is_compiling()
    return "fused" if is_fused else "native"


def takes_kernels(x: Tensor, structure: Structure, n_classes: int = 1) -> bool:
    """Whether the kernels can take logits of this device, precision and size, and win by it."""
    return (
        x.device.type == "cuda"
        and x.dtype in KERNEL_DTYPES
        and 0 not in x.shape
        and structure.is_regular
        and 0 < structure.depth <= MAX_LEVELS
        and structure.window <= MAX_CHILDREN
        and n_classes <= MAX_CLASSES
        and fits_kernels(structure, x.shape[-2] if x.dim() > 1 else 1, math.prod(x.shape[:-2]), n_classes)
        and has_triton()
    )


def fits_kernels(structure: Structure, batch: int, members: int = 1, n_classes: int = 1) -> bool:
    """Whether the kernels can be launched for a regular structure of this size, and can count all its elements.

    >>> fits_kernels(Structure(12), batch=1024), fits_kernels(Structure(12), 2**20), fits_kernels(Structure(20), 1)
    (True, False, False)
    """
    if structure.is_binary:
        lowest = min(binary_tiers(structure.depth, predicts, by_row=False)[0][0] for predicts in (False, True))
        nodes, programs = structure.n_decisions, 1 << (structure.depth - lowest)
    else:
        nodes, programs = max(structure.n_branches, sum(structure.widths)), 1
    elements = max(nodes * batch, n_classes * batch, structure.n_leaves * n_classes)
    return elements < MAX_ELEMENTS and max(programs, members) <= MAX_PROGRAMS


@functools.cache
def binary_tiers(depth: int, predicts: bool, by_row: bool) -> tuple[list[int], int, int, int]:
    """Layers of the subtrees, from the leaves to the root; rows of a block, rows of a thread, warps of a program.

    Measured on an H200. Low subtrees have few nodes to keep in registers; a prediction adds up over the subtrees, so
    it wants few of them; where leaves differ by row, it wants many, with few leaves to read each.
    """
    if predicts and by_row:
        return [max(min(depth, 2), depth - 4)], 32, 1, 1
    if predicts:
        return [min(depth, 4 if depth < 10 else 5)], 32, 1, 1
    levels, rows, together = (3, 128, 4) if depth >= 12 else (4, 64, 2)
    n_tiers = -(-depth // levels)
    return [depth // n_tiers + (k < depth % n_tiers) for k in range(n_tiers)], rows, together, 1


def takes_unit_kernels(units: Tensor) -> bool:
    """Whether bias, ELU and dropout of hidden units can be one kernel."""
    is_gpu = units.device.type == "cuda" and units.dtype in KERNEL_DTYPES
    return is_gpu and 0 < units.numel() < MAX_UNITS and has_triton()


def forgets_layers(rows: Tensor, structure: Structure, branches: Sequence[int], *, layers: bool) -> bool:
    """Whether arrivals go down layer by layer with nothing kept: binary trees without gradient, if memory is large.

    `rows` are logits, nodes first; `branches` is the shape of the branching probabilities.
    """
    has_gradient = torch.is_grad_enabled() and rows.requires_grad
    return structure.is_binary and not layers and not has_gradient and is_worth_keeping(branches, rows)


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    is_installed = importlib.util.find_spec("triton") is not None
    LOG.debug("triton was %s", "found" if is_installed else "not found: the native backend computes everything")
    if is_installed:
        _ensure_writable_cache()
    return is_installed


def _ensure_writable_cache() -> None:
    """Give Triton a temporary cache folder if its own, in the home folder, is read-only: launches would raise."""
    home = os.environ.get("TRITON_HOME", os.path.expanduser("~"))
    folder = os.environ.get("TRITON_CACHE_DIR", os.path.join(home, ".triton", "cache"))
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        folder = os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        LOG.info("Triton's cache cannot be written (%s): kernels are compiled for this process only", error)
