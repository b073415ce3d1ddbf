"""Scikit-learn estimators: a classifier and a regressor, and reading them from files."""

from tartree.estimators.classifier import TartClassifier
from tartree.estimators.regressor import TartRegressor
from tartree.estimators.saved_estimator import ESTIMATORS, load

__all__ = ["ESTIMATORS", "TartClassifier", "TartRegressor", "load"]
