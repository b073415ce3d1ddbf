"""What `tartree search` finds out before the work: whether its results can be kept, and whether Optuna is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tartree.cli.errors import Problem
from tartree.cli.writing import check_out

if TYPE_CHECKING:
    from tartree.cli.searching import Settings


def check_files(settings: Settings, data: str) -> None:
    """Raise where a result could not be written, or would take the place of another one or of the data."""
    names = {"--out": settings.out}
    if not settings.no_report:
        names |= {"--picture": settings.picture, "--report": settings.report}
    for option, name in names.items():
        check_out(name, option, settings.force)
    _check_different(names.items(), data)
    if not settings.no_report:
        _check_picture(Path(settings.picture))


def _check_different(names: Iterable[tuple[str, str]], data: str) -> None:
    taken: dict[Path, str] = {}
    for option, name in names:
        path = Path(name).resolve()
        if path in taken:
            raise Problem(f"{taken[path]} and {option} must be different files, however: both are {name}")
        taken[path] = option
    if (option_of_data := taken.get(Path(data).resolve())) is not None:
        raise Problem(f"{data} is read by this command; give another name to {option_of_data}")


def _check_picture(path: Path) -> None:
    """Raise where matplotlib, if it is there, does not know the kind of a picture."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        return
    if path.suffix and path.suffix[1:].lower() not in FigureCanvasBase.filetypes:
        known = ", ".join(sorted(FigureCanvasBase.filetypes))
        raise Problem(f"{path} cannot be drawn: a picture must end in one of {known}")


def check_optuna(settings: Settings) -> None:
    """Raise where options ask for Optuna and it is not there, or where they do not go together."""
    if settings.storage is not None and "://" not in settings.storage:
        raise Problem(f"--storage must be an address such as sqlite:///{settings.storage}, however: {settings.storage}")
    if settings.storage is not None and settings.study is None:
        raise Problem("--storage needs --study NAME, by which the study is found again")
    asked = {"--storage": settings.storage, "--study": settings.study, "--space full": settings.space == "full" or None}
    option = next((name for name, value in asked.items() if value is not None), None)
    if option is None:
        return
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise Problem(f"{option} needs Optuna, which is not installed; pip install 'tartree[search]'") from error


def check_storage(settings: Settings) -> None:
    """Raise where the storage of a study cannot be opened."""
    if settings.storage is None:
        return
    from optuna.storages import get_storage

    try:
        get_storage(settings.storage)
    except Exception as error:  # of the driver of whatever database it is
        address = re.sub(r"//[^/]*@", "//", settings.storage)  # a password is nobody else's business
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Problem(
            f"--storage {address} cannot be opened: {reason}; for a file, give an address such as sqlite:///search.db"
        ) from error
