"""Results as JSON lines: appended one by one, read as the last line of each pair of model and set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Results:
    """A file with a line for each model and set; a line without a failure has the key `numbers`."""

    def __init__(self, path: Path, numbers: str = "accuracy") -> None:
        self.path = path
        self.numbers = numbers

    def read(self, epochs: int | None = None) -> dict[tuple[str, str], Line]:
        """Return the last line of each pair; a result replaces a failure, and damaged lines are skipped.

        Only trainings of so many `epochs` count, or, with None, those with the number of the recipe: a trial neither
        counts as a real run nor replaces one.
        """
        lines: dict[tuple[str, str], Line] = {}
        for line in self._lines(epochs):
            pair = line["model"], line["set"]
            if line["failure"] and pair in lines and not lines[pair]["failure"]:
                continue
            lines[pair] = line
        return lines

    def failures(self) -> list[Line]:
        """Return all recorded failures, also those of pairs that were run again later."""
        return [line for line in self._lines() if line["failure"]]

    def _lines(self, epochs: int | None = None) -> Iterator[Line]:
        for text in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            line = self._whole(text)
            if line is not None and line.get("epochs") == epochs:
                yield line

    def _whole(self, text: bytes) -> Line | None:
        """Return a line, or None if it is damaged."""
        try:
            line = json.loads(text.decode())
        except ValueError:  # not JSON, or not even text
            return None
        if not isinstance(line, dict) or not all(isinstance(line.get(name), str) for name in ("model", "set")):
            return None
        if "failure" not in line or (not line["failure"] and line.get(self.numbers) in (None, [], {})):
            return None
        return line

    def append(self, lines: list[Line]) -> None:
        """Append lines in one write, so that several processes can share the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with open(self.path, "ab") as file:
            if file.tell() and not self._ends_well():
                text = "\n" + text  # a run was interrupted within its last line
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _ends_well(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
