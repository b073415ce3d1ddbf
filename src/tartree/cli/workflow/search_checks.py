"""Checks before a search: whether its results can be written, and whether Optuna is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tartree.cli.io.path_checks import check_different, check_output
from tartree.cli.problems import Problem

if TYPE_CHECKING:
    from tartree.cli.workflow.file_search import SearchSettings


def check_files(settings: SearchSettings, data: str) -> None:
    """Raise if a result cannot be written, or would replace another one or the data."""
    names = {"--out": settings.out}
    if not settings.no_report:
        names |= {"--picture": settings.picture, "--report": settings.report}
    for option, name in names.items():
        check_output(name, option, settings.force)
    check_different(names, data)
    if not settings.no_report:
        _check_picture(Path(settings.picture))


def _check_picture(path: Path) -> None:
    """Raise if matplotlib, where installed, cannot write the format of a picture."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        return
    if path.suffix and path.suffix[1:].lower() not in FigureCanvasBase.filetypes:
        endings = ", ".join(sorted(FigureCanvasBase.filetypes))
        raise Problem(f"{path} cannot be drawn: a picture must end in one of {endings}")


def check_optuna(settings: SearchSettings) -> None:
    """Raise if options need Optuna and it is not installed, or if they contradict each other."""
    if settings.storage is not None and "://" not in settings.storage:
        raise Problem(f"--storage must be an address such as sqlite:///{settings.storage}, got {settings.storage}")
    if settings.storage is not None and settings.study is None:
        raise Problem("--storage needs --study NAME, by which the study is resumed")
    asked = {"--storage": settings.storage, "--study": settings.study, "--space full": settings.space == "full" or None}
    option = next((name for name, value in asked.items() if value is not None), None)
    if option is None:
        return
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise Problem(f"{option} needs Optuna, which is not installed; pip install 'tartree[search]'") from error


def check_storage(settings: SearchSettings) -> None:
    """Raise if the storage of a study cannot be opened."""
    if settings.storage is None:
        return
    from optuna.storages import get_storage

    try:
        get_storage(settings.storage)
    except Exception as error:  # of the driver of any database
        address = re.sub(r"//[^/]*@", "//", settings.storage)  # without a password
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Problem(
            f"--storage {address} cannot be opened: {reason}; for a file, give an address such as sqlite:///search.db"
        ) from error
