"""Small fitted estimators of every kind, for the tests of this folder."""

import numpy as np
import pandas as pd
import pytest
import torch

from tartree import TartClassifier, TartRegressor
from tartree.model import fitted_model
from tartree.nn.subtree import shrink_structure, shrink_tree
from tests.tolerances import on_cpu

KINDS = {
    "default": {},
    "one leaf": {"depth": 0},
    "even shares": {"decision_layers": 0},
    "perceptron decisions": {"decision_layers": 2, "hidden": 5},
    "constant leaves": {"leaf_layers": 0},
    "perceptron leaves": {"leaf_layers": 2, "hidden": 5},
    "window 3": {"window": 3},
    "shared children": {"window": 3, "stride": 2},
    "shared, perceptrons": {"window": 3, "stride": 1, "decision_layers": 2, "leaf_layers": 2, "hidden": 4},
    "members": {"members": 3},
    "single": {"selection": "single"},
    "single, shared": {"selection": "single", "window": 3, "stride": 2, "members": 2},
    "single, perceptrons": {"selection": "single", "decision_layers": 2, "leaf_layers": 2, "hidden": 4},
    "sigsoftmax": {"branching": "sigsoftmax", "window": 3},
    "spherical": {"branching": "spherical"},
    "sparsemax": {"branching": "sparsemax", "window": 3},
    "entmax15": {"branching": "entmax15"},
    "quantile": {"numeric": "quantile"},
}


def patients(n=80, seed=0):
    """A table with numbers, gaps, levels, booleans and dates, and three classes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "bmi": np.where(rng.random(n) < 0.1, np.nan, rng.normal(25, 4, n)),
            "sex": rng.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1]),
            "smoker": rng.random(n) < 0.3,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    risk = frame["age"] / 20 + 2 * frame["smoker"] + (frame["sex"] == "m")
    return frame, np.array(["low", "middle", "high"])[np.digitize(risk, [2.5, 4])], risk.to_numpy() * 100


def fit(kind="default", task="classes", seed=0, noise=1.0, **changes):
    """A fitted estimator of a kind and the table it was fitted to; weights are stirred, so that rows differ."""
    frame, labels, values = patients(seed=seed)
    parameters = {"depth": 2, "epochs": 2, "random_state": seed, **KINDS[kind], **changes}
    if parameters.get("branching") in ("sparsemax", "entmax15"):
        pytest.importorskip("entmax")
    if task == "values":
        model = TartRegressor(**parameters).fit(frame, values)
    elif task == "two values":
        model = TartRegressor(**parameters).fit(frame, np.stack([values, values**2], axis=1))
    else:
        model = TartClassifier(**parameters).fit(frame, labels if task == "classes" else labels == "high")
    stir(model, seed, noise)
    return model, frame


def stir(model, seed, size):
    """Add noise to every weight."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.tree_.parameters():
            parameter += (size * torch.randn(parameter.shape, generator=generator)).to(parameter.device)
    return model


def double_tree(source):
    """The tree of a fitted estimator in double precision."""
    return fitted_model(source).double_tree()


def encode(source, X):
    """Rows as the tree reads them, (rows, features)."""
    return fitted_model(source).encode(X)


def prune(model, leaves):
    """The model without some leaves and without a refit: an irregular structure."""
    tree = double_tree(model)
    origin = shrink_structure(tree.structure, [(tree.structure.depth, leaf) for leaf in leaves])
    return model.with_model(model.model_.with_tree(shrink_tree(tree, origin)))


def predictions(model, X):
    """What the estimator itself predicts, (rows, outputs), in double precision, as explanations are computed."""
    model = on_cpu(model)
    if hasattr(model, "classes_"):
        return model.predict_proba(X)
    return np.asarray(model.predict(X)).reshape(len(X), -1)


def changes(before, after, X):
    """Changes of the predictions, in standard deviations of the target for values."""
    return np.abs(predictions(before, X) - predictions(after, X)) / getattr(before, "target_scale_", 1.0)
