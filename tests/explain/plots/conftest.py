"""Tables, trees and a regression to draw."""

import numpy as np
import pandas as pd
import pytest

from tartree import TartRegressor
from tartree.explain import view


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra plot").close("all")


@pytest.fixture(scope="session")
def table():
    from tests.explain.plots.figures import LONG

    rng = np.random.default_rng(0)
    n = 90
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=[LONG.format(k) for k in range(4)] + ["b"])
    X["admitted"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    X["ward"] = rng.choice(["surgery", "internal medicine", "<b>"], n)
    X.loc[::9, "b"] = np.nan
    return X, np.array(["benign", "malignant, a name that goes on and on", "$x$"])[rng.integers(0, 3, n)]


@pytest.fixture(scope="session")
def trees(table):
    """The view of each shape on all rows, and on row 3 alone."""
    from tests.explain.plots.figures import SHAPES, shaped

    X, y = table
    models = {name: shaped(structure, X, y) for name, structure in SHAPES.items()}
    return {name: (view(model, X, y), view(model, X[3:4])) for name, model in models.items()}


@pytest.fixture(scope="session")
def regression(table):
    X, _ = table
    y = X["b"].fillna(0).to_numpy() * 1e4
    model = TartRegressor(depth=3, epochs=1, random_state=0, device="cpu").fit(X, y)
    return model, X, y
