"""How things are timed: in turns, so that all meet the same machine, and by medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from timing.said import said

Function = Callable[[], Any]
#: Calls faster than this, in seconds, are timed several in a row: a step comes after a step, not after other work.
SHORT = 5e-2


class Clock:
    """Times functions on a device.

    Parameters
    ----------
    device : torch.device
    repeats : int
        Turns; slow functions take fewer, at least three.
    seconds : float
        About how long one function may be timed in all.
    """

    def __init__(self, device: torch.device, repeats: int = 20, seconds: float = 3.0) -> None:
        self.device, self.repeats, self.seconds = device, repeats, seconds
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def surroundings(self) -> AbstractContextManager[Any]:
        """A stream of its own on a GPU, as captured graphs need; nothing on a CPU."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def once(self, function: Function, calls: int = 1) -> float:
        """Seconds of one call, the mean of some in a row."""
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
        """Median milliseconds of a call of each function, measured in turns."""
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
                            functions[name]()  # brings back to the caches what others have driven out
                        times[name].append(self.once(functions[name], calls))
        return {name: 1e3 * statistics.median(own) for name, own in times.items()}

    def wall(self, function: Function, repeats: int = 3) -> float:
        """Median seconds of a whole call, waiting for its end; for what takes long."""
        times = []
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            function()
            self.wait()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def captured(self, function: Function) -> Function:
        """The same work as one CUDA graph; the function itself on a CPU.

        What cannot be captured is an error: a floor or a rival that is timed as it is would flatter us.
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
                raise RuntimeError(f"what is measured must be captured as a graph, however: {said(error)}") from error

        def replay() -> Any:
            graph.replay()
            return outcome  # the same memory each time

        replay.works_on = function  # type: ignore[attr-defined]  # a graph does not keep the tensors that it writes to
        return replay
