"""Coordinator: barrier, first error, result and progress of a training on many workers.

Nothing heavy is imported, so that the actor starts quickly.
"""

from __future__ import annotations

import asyncio
from collections import Counter


class Coordinator:
    """An actor that all workers reach, and that outlives them.

    A worker that fails alone would leave the others waiting in a collective for ever, so they pass a barrier first.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.result: bytes | None = None
        self.epoch: bytes | None = None
        self._arrived: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def wait(self, barrier: str, size: int) -> bool:
        """Wait for so many workers at a barrier; return False if one has failed."""
        async with self._changed:
            self._arrived[barrier] += 1
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self.error is not None or self._arrived[barrier] >= size)
            return self.error is None

    async def fail(self, error: Exception) -> None:
        """Record an error, if it is the first, and release all barriers."""
        async with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    async def finish(self, result: bytes) -> None:
        """Record the result, pickled: its classes need not be imported here."""
        self.result = result

    async def report_epoch(self, epoch: bytes) -> None:
        """Record the last epoch, pickled likewise."""
        self.epoch = epoch

    async def last_epoch(self) -> bytes | None:
        """Return the last epoch that was reported."""
        return self.epoch

    async def outcome(self) -> tuple[Exception | None, bytes | None]:
        """Return the first error and the result; both are None while the training runs."""
        return self.error, self.result
