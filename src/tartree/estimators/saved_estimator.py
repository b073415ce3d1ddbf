"""Reading a fitted estimator from a file."""

from __future__ import annotations

from os import PathLike, fspath

from tartree.estimators.classifier import TartClassifier
from tartree.estimators.regressor import TartRegressor
from tartree.explain import Certificate, Hardening
from tartree.model import file
from tartree.model.target import Task
from tartree.persist import ModelFileError

#: The estimator of each task.
ESTIMATORS: dict[Task, type[TartClassifier] | type[TartRegressor]] = {
    "classification": TartClassifier,
    "regression": TartRegressor,
}


def load(path: str | PathLike[str]) -> TartClassifier | TartRegressor:
    """Read an estimator that `save` wrote; it predicts the same bits as before, on the device at hand.

    Nothing in a file is ever run: it holds numbers and plain data.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    TartClassifier or TartRegressor

    Raises
    ------
    tartree.persist.ModelFileError
        If the file is damaged, foreign or written by a newer version. It is a ValueError.
    """
    saved = file.load(path, {"certificate": Certificate, "hardening": Hardening})
    try:
        # Files of the time before `readable` hold models with the defaults of that time.
        estimator = ESTIMATORS[saved.model.task](**{"readable": False, **saved.parameters})
    except TypeError as error:
        raise ModelFileError(f"{fspath(path)}: its content does not fit together: {error}") from error
    return estimator.adopt(saved.model)
