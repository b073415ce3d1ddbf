"""Results as JSON lines: appended as they come, read back with the last word on each pair of model and set."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

Line = dict[str, Any]


class Results:
    """A file with one line for each model and set; a line without a failure has `numbers`."""

    def __init__(self, path: Path, numbers: str = "accuracy") -> None:
        self.path = path
        self.numbers = numbers

    def read(self, epochs: int | None = None) -> dict[tuple[str, str], Line]:
        """The last line of each pair; a number counts more than a failure. A line that was cut is passed over.

        Only trainings of so many `epochs` count, or where that is None, those with the recipe's own number: a trial
        says nothing about a real run, nor takes its place.
        """
        found: dict[tuple[str, str], Line] = {}
        for line in self._lines(epochs):
            pair = line["model"], line["set"]
            if line["failure"] and pair in found and not found[pair]["failure"]:
                continue
            found[pair] = line
        return found

    def failures(self) -> list[Line]:
        """Every failure that was recorded, also of what was run again since."""
        return [line for line in self._lines() if line["failure"]]

    def _lines(self, epochs: int | None = None) -> Iterator[Line]:
        for text in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            line = self._whole(text)
            if line is not None and line.get("epochs") == epochs:
                yield line

    def _whole(self, text: bytes) -> Line | None:
        """A line as it was written, or None for what a crash has left of one."""
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
        """Write lines in one go, so that several processes can share the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with open(self.path, "ab") as file:
            if file.tell() and not self._ends_well():
                text = "\n" + text  # a run was cut within its last line
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _ends_well(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"


def machine(device: torch.device) -> Line:
    """What a number was computed with."""
    import sklearn

    import tartree

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sklearn": sklearn.__version__,
        "tartree": tartree.__version__,
    }
