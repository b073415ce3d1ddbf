"""Standard output: a console for people, one JSON object for machines."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.rendering.phrases import counted

if TYPE_CHECKING:
    from rich.console import Console


def make_console(file: Any = None) -> Console:
    """Return a console that prints text as it is, since column names may look like markup."""
    from rich.console import Console

    return Console(file=file, markup=False, highlight=False, emoji=False)


def print_json(data: dict[str, Any]) -> None:
    """Print plain data as JSON."""
    import json

    click.echo(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))


def show_facts(console: Console, facts: dict[str, str]) -> None:
    """Print names and their texts in two columns."""
    indent = max(map(len, facts)) + 2
    width = max(console.width, indent + 20)
    for name, text in facts.items():
        lines = textwrap.wrap(text, width, initial_indent=f"{name:{indent}}", subsequent_indent=" " * indent)
        console.print("\n".join(lines), soft_wrap=True)


def describe_file_size(path: str) -> str:
    """Return the size of a file with its unit."""
    size = os.path.getsize(path)
    return f"{size / 1000:,.0f} kB" if size >= 1000 else f"{size} bytes"


def describe_structure(structure: dict[str, Any], n_leaves: int, members: int, n_parameters: int, *more: str) -> str:
    """Return structure, leaves and parameters as a phrase."""
    regular = {"depth": len(structure["children"])} if "children" in structure else structure
    shape = ", ".join(f"{key} {value}" for key, value in regular.items())
    leaves = "leaf" if n_leaves == 1 else "leaves"
    each = f"{members} trees of " if members > 1 else ""
    return ", ".join([f"{each}{shape}: {n_leaves:,} {leaves}", counted(n_parameters, "parameter"), *more])
