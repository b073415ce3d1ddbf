"""Run the Python blocks of docs/explaining.md, and write their output and pictures into docs.

    python examples/explaining.py

A block fenced as `text` or `mermaid` holds the output of the Python block above it. Pictures are the PNG files that the
blocks save.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import matplotlib

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```(?P<kind>text|mermaid)\n.*?```\n)?", re.DOTALL)
INDENT = re.compile(r"(?:\|   )* *")
POINT = re.compile(r"([\d.]+) at (-?[\d.])")
WIDTH = 118  # characters that a page shows without a scroll bar


def run(code: str, namespace: dict[str, Any]) -> str:
    """Return the output of a block."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/explaining.md", "exec"), namespace)
    return printed.getvalue()


def fill(page: str) -> str:
    """Return the page with the output of its blocks, which run in order in one namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def filled(match: re.Match[str]) -> str:
        printed = run(match["code"], namespace)
        if bool(printed) != bool(match["kind"]):
            raise ValueError(f"a block that prints must be followed by a text block, got\n{match['code']}")
        block = f"```python\n{match['code']}```\n"
        if match["kind"] == "text":
            printed = wrapped(printed)
        return f"{block}\n```{match['kind']}\n{printed}```\n" if printed else block

    return BLOCK.sub(filled, page)


def wrapped(text: str) -> str:
    """Break lines that are too long for a page; the rest of a line stays in the column of its branch."""
    text = POINT.sub("\\1\0at\0\\2", text)  # a point of a curve stays in one line
    lines = [textwrap.wrap(line, WIDTH, subsequent_indent=continuation(line)) or [""] for line in text.splitlines()]
    return "\n".join([*(part for line in lines for part in line), ""]).replace("\0", " ")


def continuation(line: str) -> str:
    """Return the indent of what follows a break of the line, with the bars of a tree.

    >>> continuation("|   |       radius")
    '|   |           '
    """
    bars = INDENT.match(line)
    return (bars[0] if bars else "") + "    "


def main() -> None:
    matplotlib.use("Agg")
    page = DOCS / "explaining.md"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = fill(page.read_text(encoding="utf-8"))
        for picture in sorted(Path(folder).glob("explaining-*.png")):
            shutil.copyfile(picture, DOCS / "pictures" / picture.name)
            print(f"docs/pictures/{picture.name}")
        os.chdir(DOCS)
    page.write_text(text, encoding="utf-8")
    print("docs/explaining.md")


if __name__ == "__main__":
    main()
