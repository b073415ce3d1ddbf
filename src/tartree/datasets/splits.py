"""Row numbers in text, two lines a split: rows to train on, rows to test on."""

from __future__ import annotations

import numpy as np

from tartree.datasets.record import Rows, Split

N_SPLITS = 4


def parse_splits(file: str, content: bytes, n_splits: int, n_rows: int) -> tuple[Split, ...]:
    """Splits of a file with 0-based row numbers below `n_rows`, or a ValueError that says what is wrong."""
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) != 2 * n_splits:
        raise ValueError(f"{file} must have {2 * n_splits} lines of row numbers, however: {len(lines)}")
    parts = [_parse_rows(f"line {place + 1} of {file}", line, n_rows) for place, line in enumerate(lines)]
    splits = tuple(zip(parts[::2], parts[1::2], strict=True))
    for place, (train, test) in enumerate(splits):
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(
                f"train and test rows of split {place} in {file} must differ, however: {len(both)} are in both"
            )
    return splits


def _parse_rows(where: str, line: bytes, n_rows: int) -> Rows:
    try:
        rows = np.array([int(text) for text in line.split()], dtype=np.int64)
    except (ValueError, OverflowError):
        raise ValueError(f"{where} must hold whole numbers only, however: {_first_wrong(line)!r}") from None
    wrong = rows[(rows < 0) | (rows >= n_rows)]
    if len(wrong):
        raise ValueError(f"{where} must hold row numbers from 0 to {n_rows - 1}, however: {wrong[0]}")
    if len(np.unique(rows)) != len(rows):
        raise ValueError(f"{where} must hold each row once, however: {len(rows) - len(np.unique(rows))} come again")
    return rows


def _first_wrong(line: bytes) -> str:
    words = (word.decode("utf-8", "replace")[:40] for word in line.split())
    return next(word for word in words if not (word.isdecimal() and len(word) < 18))
