"""A function that is run again and again on a GPU, captured as one CUDA graph.

Small kernels take less time than their launches. A graph launches all of them at once, so a step costs what its kernels
cost.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import nn

from tartree.nn import Tree
from tartree.nn.branching import sigsoftmax, spherical

EAGER_CALLS = 2  # before capture: what is loaded or compiled at first use cannot be captured


def can_capture(tree: Tree) -> bool:
    """Whether a tree is known never to wait for the GPU: made of this library's and torch's own modules.

    A decision or leaf of the user's own is captured where its class says so, with ``capturable = True``.
    """
    known = (torch.softmax, sigsoftmax, spherical)
    return tree.branching.activation in known and all(_is_known(module) for module in tree.modules())


def _is_known(module: nn.Module) -> bool:
    home = type(module).__module__
    return home.startswith(("tartree.nn.", "torch.nn.")) or getattr(module, "capturable", False) is True


class Captured:
    """Calls ``function()``; from the third time on, replays what it did. To be used on a stream of its own.

    The function must do the same work on the same tensors every time, and never wait for the GPU.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
            return
        self.calls += 1
        if self.calls != EAGER_CALLS + 1:
            self.function()
            return
        # By hand: torch's context manager collects garbage first, which takes longer than the fit of a small table.
        graph = torch.cuda.CUDAGraph()
        torch.cuda.current_stream().synchronize()
        with _garbage_kept():
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                self.function()
            except BaseException:
                with suppress(RuntimeError):  # it must be ended too, but what went wrong is the news
                    graph.capture_end()
                raise
            graph.capture_end()
        self.graph = graph
        graph.replay()  # capturing has computed nothing yet


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """No garbage collection: an old graph that is freed while a new one is captured would end the capture."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
