"""Markdown: tables, wrapped paragraphs, and the generated parts of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 118


def table(head: Sequence[Any], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Return the lines of a table.

    >>> table(["depth", "leaves"], [[2, 4]])
    ['| depth | leaves |', '|---|---|', '| 2 | 4 |']
    """
    return [table_row(head), "|" + "---|" * len(head), *map(table_row, rows)]


def table_row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)


def replace_between(page: str, begin: str, end: str, text: str) -> str:
    """Replace what is between two marks of a page.

    >>> replace_between("a <b> old <e> z <e>", "<b>", "<e>", "new").split()
    ['a', '<b>', 'new', '<e>', 'z', '<e>']
    """
    before, first_mark, rest = page.partition(begin)
    _, second_mark, after = rest.partition(end)
    if not (first_mark and second_mark):
        raise ValueError(f"the page must have the marks {begin} and {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"
