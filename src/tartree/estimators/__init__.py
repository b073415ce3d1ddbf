"""Scikit-learn estimators: one class a kind of target, the list of them, and reading them from files."""

from os import PathLike, fspath

from tartree.estimators.classifier import TartClassifier
from tartree.estimators.regressor import TartRegressor
from tartree.explain import Certificate, Hardening
from tartree.model import file
from tartree.persist import ModelFileError

__all__ = ["ESTIMATORS", "TartClassifier", "TartRegressor", "load"]

#: The estimator of each kind of target.
ESTIMATORS: dict[str, type[TartClassifier] | type[TartRegressor]] = {
    estimator.target_kind: estimator for estimator in (TartClassifier, TartRegressor)
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
        estimator = ESTIMATORS[saved.model.codec.kind](**{"readable": False, **saved.parameters})
    except TypeError as error:
        raise ModelFileError(f"{fspath(path)}: its content does not fit together: {error}") from error
    return estimator.adopt(saved.model)
