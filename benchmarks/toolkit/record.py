"""Records of measurements: NAME.json with the results, and NAME.md with the page made from them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def beside(out: Path, ending: str) -> Path:
    """Return a file of a record, whose name may have a dot.

    >>> beside(Path("speed.v2"), ".json").name
    'speed.v2.json'
    """
    return out.with_name(out.name + ending)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    default = Path("docs/benchmarks") / name
    parser.add_argument("--out", type=Path, default=default, help="path of the record, without an ending")
    parser.add_argument("--page", action="store_true", help="only write the page, from the saved results")


def write(arguments: argparse.Namespace, measure: Callable[[], Any], page: Callable[[Any], str]) -> None:
    """Measure unless only the page is asked for, save the results, and write their page."""
    data, text = beside(arguments.out, ".json"), beside(arguments.out, ".md")
    if not arguments.page:
        results = measure()
        data.parent.mkdir(parents=True, exist_ok=True)
        data.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(data)
    text.write_text(page(json.loads(data.read_text(encoding="utf-8"))), encoding="utf-8")
    print(text)
