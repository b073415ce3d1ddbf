"""Checks of the paths of a command before its work begins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tartree.cli.io.byte_stream import STANDARD_INPUT
from tartree.cli.io.parquet_input import is_several
from tartree.cli.problems import Problem


def check_output(name: str, option: str, force: bool) -> None:
    """Raise if a result cannot be written."""
    path = Path(name)
    if path.is_dir():
        raise Problem(f"{path} is a directory; give the name of a file to {option}")
    if path.exists() and not force:
        raise Problem(f"{path} exists; give --force to replace it, or another {option}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Problem(f"{path} cannot be written: {path.parent} is not a directory that can be written to")
    if path.exists() and not os.access(path, os.W_OK):
        raise Problem(f"{path} cannot be written: it is protected; give another {option}")


def check_different(outputs: dict[str, str], data: str) -> None:
    """Raise if two results, by option, would be the same file, or would replace the data."""
    options: dict[Path, str] = {}
    for option, name in outputs.items():
        path = Path(name).resolve()
        if path in options:
            raise Problem(f"{options[path]} and {option} must be different files, got {name} for both")
        options[path] = option
    if (option_of_data := options.get(Path(data).resolve())) is not None:
        raise Problem(f"{data} is read by this command; give another name to {option_of_data}")


def check_not_read(out: str, inputs: Iterable[str]) -> None:
    """Raise if a result would replace one of the files that are read."""
    if os.path.exists(out) and any(os.path.exists(path) and os.path.samefile(out, path) for path in inputs):
        raise Problem(f"{out} is read by this command; give another --out")


def check_inputs(model: str, data: str, out: str) -> None:
    """Raise if a model or its data does not exist, or would be replaced; before torch is imported, which is slow."""
    check_not_read(out, (model, data))
    if not os.path.exists(model):
        raise Problem(f"{model}: No such file; the model comes first, then the data")
    if data != STANDARD_INPUT and not is_several(data):
        os.stat(data)
