"""Scikit-learn estimators: a classifier and a regressor, and reading them from files."""

from tartree.estimators.classifier import TartClassifier
from tartree.estimators.files import load
from tartree.estimators.regressor import TartRegressor

__all__ = ["TartClassifier", "TartRegressor", "load"]
