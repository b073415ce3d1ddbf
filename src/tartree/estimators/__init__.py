"""Scikit-learn estimators: a classifier and a regressor, and reading them from files."""

from tartree.estimators.classifier import TartClassifier
from tartree.estimators.regressor import TartRegressor
from tartree.estimators.saved_estimator import load

__all__ = ["TartClassifier", "TartRegressor", "load"]
