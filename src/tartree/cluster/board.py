"""Where the workers of a training meet, and tell how it ended. Nothing heavy is imported, so that it starts quickly."""

from __future__ import annotations

import asyncio
from collections import Counter


class Board:
    """An actor that all workers can reach, and that outlives them: where they meet, and who has failed or is done.

    A worker that fails alone would leave the others waiting in a collective for ever. So they meet here first.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.result: bytes | None = None
        self.epoch: bytes | None = None
        self._arrived: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def meet(self, where: str, size: int) -> bool:
        """Wait until so many workers are there; whether they are, and none has failed."""
        async with self._changed:
            self._arrived[where] += 1
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self.error is not None or self._arrived[where] >= size)
            return self.error is None

    async def fail(self, error: Exception) -> None:
        """Tell all what went wrong; the first word counts."""
        async with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    async def finish(self, result: bytes) -> None:
        """Keep the result, packed: what it is made of need not be imported here."""
        self.result = result

    async def tell(self, epoch: bytes) -> None:
        """Keep word of the last epoch, packed likewise."""
        self.epoch = epoch

    async def told(self) -> bytes | None:
        """What was told last."""
        return self.epoch

    async def outcome(self) -> tuple[Exception | None, bytes | None]:
        """What went wrong, and the result; both None as long as nobody has said anything."""
        return self.error, self.result
