"""Reading a fitted estimator from a file."""

from __future__ import annotations

from os import PathLike, fspath

from tartree import persist
from tartree.estimators.classifier import TartClassifier
from tartree.estimators.regressor import TartRegressor
from tartree.estimators.state import restore

ESTIMATORS = {cls.__name__: cls for cls in (TartClassifier, TartRegressor)}


def load(path: str | PathLike[str]) -> TartClassifier | TartRegressor:
    """Read an estimator that `save` wrote; it predicts bit for bit as before, on whatever device is at hand.

    Nothing in a file is ever run: it holds numbers and plain data. A file that is damaged, foreign or written by a
    newer version raises `tartree.persist.ModelFileError`, a ValueError that says so.
    """
    document, arrays = persist.read(path)
    name = document.get("estimator")
    if name not in ESTIMATORS:
        raise persist.ModelFileError(f"{fspath(path)}: it must hold one of {', '.join(ESTIMATORS)}, however: {name!r}")
    try:
        estimator = restore(ESTIMATORS[name], document, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise persist.ModelFileError(f"{fspath(path)}: its content does not fit together: {reason}") from error
    assert isinstance(estimator, TartClassifier | TartRegressor)
    return estimator
