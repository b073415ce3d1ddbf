"""Timing of functions: in turns, so that all run under the same load, with medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from toolkit.failure import failure_text

Function = Callable[[], Any]
#: Calls shorter than this, in seconds, are timed several in a row: a step follows a step, not other work.
SHORT = 5e-2


class Clock:
    """Times functions on a device.

    Parameters
    ----------
    device : torch.device
    repeats : int
        Turns; fewer for slow functions, at least three.
    seconds : float
        Approximate time for measuring one function.
    """

    def __init__(self, device: torch.device, repeats: int = 20, seconds: float = 3.0) -> None:
        self.device, self.repeats, self.seconds = device, repeats, seconds
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def surroundings(self) -> AbstractContextManager[Any]:
        """Return a separate stream on a GPU, as captured graphs need, and a null context on a CPU."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def once(self, function: Function, calls: int = 1) -> float:
        """Return seconds of one call, the mean of `calls` in a row."""
        if self.stream is not None:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self.wait()
            start.record()
            for _ in range(calls):
                function()
            end.record()
            end.synchronize()
            return start.elapsed_time(end) / 1e3 / calls
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) / calls

    def medians(self, functions: Mapping[str, Function]) -> dict[str, float]:
        """Return median milliseconds of a call of each function, measured in turns."""
        with self.surroundings():
            plans = {}
            for name, function in functions.items():
                first = self.once(function)  # compiles and captures
                for _ in range(0 if first > 1 else 5):
                    function()
                estimate = first if first > 1 else max(self.once(function), 1e-7)
                calls = max(1, min(20, round(SHORT / estimate)))
                plans[name] = calls, max(3, min(self.repeats, int(self.seconds / (calls * estimate))))
            times: dict[str, list[float]] = {name: [] for name in functions}
            for turn in range(max(turns for _, turns in plans.values())):
                for name, (calls, turns) in plans.items():
                    if turn < turns:
                        if calls > 1:
                            functions[name]()  # fills the caches again
                        times[name].append(self.once(functions[name], calls))
        return {name: 1e3 * statistics.median(seconds) for name, seconds in times.items()}

    def wall(self, function: Function, repeats: int = 3) -> float:
        """Return median seconds of a long call, until its work on the device has ended."""
        times = []
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            function()
            self.wait()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def captured(self, function: Function) -> Function:
        """Return the same work as one CUDA graph, or the function itself on a CPU.

        A function that cannot be captured is an error: timing it eagerly would favour the library.
        """
        if self.stream is None:
            return function
        with self.surroundings():
            for _ in range(3):
                function()
            self.wait()
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, stream=self.stream):
                    outcome = function()
            except RuntimeError as error:
                text = failure_text(error, first_line=True)
                raise RuntimeError(f"a measured function must be capturable as a graph, got {text}") from error

        def replay() -> Any:
            graph.replay()
            return outcome  # the same memory each time

        replay.works_on = function  # type: ignore[attr-defined]  # keeps the tensors that the graph writes to
        return replay
