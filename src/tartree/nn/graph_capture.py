"""A function that is run again and again on a GPU, captured as one CUDA graph.

Small kernels take less time than their launches. A graph launches all of them at once, so a step costs what its kernels
cost.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import Tensor

from tartree.nn import dispatch
from tartree.nn.tree import Selection, Tree

EAGER_CALLS = 2  # before capture: what is loaded or compiled at first use cannot be captured


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


class Predictor:
    """Predictions for batch after batch of one size: on a GPU, each costs what its kernels cost.

    Parameters
    ----------
    tree : Tree
        It is put into evaluation mode. Later changes of its parameters in place are seen.
    x : Tensor of shape (batch, features) or (members, batch, features)
        The memory that rows are predicted from; it is kept.
    selection : {"multi", "single"}

    Examples
    --------
    >>> from tartree import Structure
    >>> from tartree.nn import Classes, Predictor, Tree
    >>> tree = Tree.build(Structure(3), 5, Classes(2))
    >>> predict = Predictor(tree, torch.zeros(4, 5))
    >>> predict(torch.randn(4, 5)).shape
    torch.Size([1, 4, 2])
    """

    def __init__(self, tree: Tree, x: Tensor, selection: Selection = "multi") -> None:
        self.tree, self.x, self.selection = tree.eval(), x, selection
        self.run: Callable[[], None] = self._predict
        self._predict()  # whatever is wrong is said here
        if dispatch.captures_prediction(tree, x):
            self.run = Captured(self._predict)
            aside = torch.cuda.Stream(x.device)
            aside.wait_stream(torch.cuda.current_stream(x.device))
            with torch.cuda.stream(aside):
                for _ in range(EAGER_CALLS + 1):
                    self.run()
            torch.cuda.current_stream(x.device).wait_stream(aside)

    @torch.no_grad()
    def _predict(self) -> None:
        self.found = self.tree.predict(self.x, self.selection)

    def __call__(self, x: Tensor | None = None) -> Tensor:
        """What `Tree.predict` gives for rows, or for those written into `x`; the next call may overwrite it."""
        if x is not None:
            if x.shape != self.x.shape:
                raise ValueError(
                    f"rows must have the shape {tuple(self.x.shape)} that the predictor was made for, got "
                    f"{tuple(x.shape)}; make another one for these"
                )
            self.x.copy_(x)
        self.run()
        return self.found


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
