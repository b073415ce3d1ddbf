"""Splits as text, two lines of row indices each: rows to train on, rows to test on."""

from __future__ import annotations

import numpy as np

from tartree.datasets.uci_set import Rows, Split

N_SPLITS = 4


def parse_splits(file: str, content: bytes, n_splits: int, n_rows: int) -> tuple[Split, ...]:
    """Return the splits of a file with row indices from 0 to `n_rows` - 1, or raise a ValueError about them."""
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) != 2 * n_splits:
        raise ValueError(f"{file} must have {2 * n_splits} lines of row numbers, got {len(lines)}")
    parts = [_parse_rows(f"line {k + 1} of {file}", line, n_rows) for k, line in enumerate(lines)]
    splits = tuple(zip(parts[::2], parts[1::2], strict=True))
    for k, (train, test) in enumerate(splits):
        n_both = len(np.intersect1d(train, test))
        if n_both:
            raise ValueError(f"train and test rows of split {k} in {file} must differ, got {n_both} in both")
    return splits


def _parse_rows(location: str, line: bytes, n_rows: int) -> Rows:
    try:
        rows = np.array([int(text) for text in line.split()], dtype=np.int64)
    except (ValueError, OverflowError):
        raise ValueError(f"{location} must hold whole numbers only, got {_first_wrong(line)!r}") from None
    wrong = rows[(rows < 0) | (rows >= n_rows)]
    if len(wrong):
        raise ValueError(f"{location} must hold row numbers from 0 to {n_rows - 1}, got {wrong[0]}")
    if len(np.unique(rows)) != len(rows):
        raise ValueError(f"{location} must hold each row once, got {len(rows) - len(np.unique(rows))} repeated")
    return rows


def _first_wrong(line: bytes) -> str:
    texts = (part.decode("utf-8", "replace")[:40] for part in line.split())
    return next(text for text in texts if not (text.isdecimal() and len(text) < 18))
