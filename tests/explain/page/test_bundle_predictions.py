"""Every kind of model on a page in a real browser: no script error, and the predictions of Python; or a clear word."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeClassifier

from tartree import TartClassifier, TartRegressor, zoo
from tartree.explain.page import write_report
from tartree.explain.page.bundle import read
from tartree.nn import ACTIVATIONS, Branching
from tartree.nn.outputs import OUTPUTS
from tests.explain.models import stir
from tests.zoo.test_contract import SMALL

pytestmark = pytest.mark.browser

SPARSE = ("sparsemax", "entmax15")  # need the package entmax


def table(n_rows=48, seed=0):
    """Numbers with missing values, levels and booleans."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(draw.normal([50, 5000, 0.01], [12, 3000, 0.004], (n_rows, 3)), columns=["age", "sum", "rate"])
    frame.loc[::7, "sum"] = np.nan
    frame["ward"] = draw.choice(["A", "B", "C"], n_rows)
    frame["smoker"] = draw.choice([True, False], n_rows)
    return frame


def target(frame, task):
    score = (frame["age"] - 50) / 12 + (frame["ward"] == "B")
    if task == "regression":
        return score.to_numpy() * 1000 + 20
    if task == "two targets":
        return np.column_stack([score, 300 - 20 * score])
    if task == "two classes":
        return np.where(score > 0, "good", "bad")
    return np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.5])]


TASKS = ("two classes", "three classes", "regression", "two targets")
MODELS = {
    f"{name}, {window} children": {"branching": name, "window": window} for name in ACTIVATIONS for window in (2, 3)
}
MODELS |= {f"{name}, temperature 0.4": {"branching": name, "temperature": 0.4} for name in ACTIVATIONS}
MODELS |= {
    "learned temperature": {"temperature": "learned", "window": 3},
    "hard, shared children": {"branching": "hard", "window": 3, "stride": 2, "members": 2},
    "hard, one leaf answers": {"branching": "hard", "selection": "single"},
    "one leaf answers": {"selection": "single", "members": 2},
    "forest": {"members": 3},
    "even decisions": {"decision_layers": 0},
    "network decisions": {"decision_layers": 3, "hidden": 4},
    "constant leaves": {"leaf_layers": 0},
    "network leaves": {"leaf_layers": 3, "hidden": 4},
    "no decisions": {"depth": 0},
    "ranks": {"numeric": "quantile"},
    "plain numbers": {"numeric": "plain"},
}
#: One task each, and all tasks for some.
CASES = [(name, TASKS[place % len(TASKS)]) for place, name in enumerate(MODELS)]
CASES += [
    (name, task)
    for name in ("forest", "hard, 2 children", "network leaves")
    for task in TASKS
    if (name, task) not in CASES
]


def predicted(model, rows):
    """What the page computes: probabilities, or value, deviation and interval of each target."""
    if isinstance(model, TartRegressor):
        mean, std = (part.reshape(len(rows), -1) for part in model.predict(rows, return_std=True))
        ends = np.asarray(model.predict_quantiles(rows, [0.05, 0.95])).reshape(len(rows), 2, -1)
        return np.stack([mean, std, ends[:, 0], ends[:, 1]], axis=-1).reshape(len(rows), -1)
    return model.predict_proba(rows)


def computed(page, n_rows):
    found = page.evaluate(f"Array.from({{ length: {n_rows} }}, (_, place) => window.tartree.predictRow(place))")
    if isinstance(found[0][0], dict):
        return np.array([[t[name] for t in row for name in ("value", "std", "low", "high")] for row in found])
    return np.array(found)


def look_around(page):
    """Touch what draws: a row, every node, typical values, a typed number."""
    page.click("[aria-label='Next row']")
    for place in range(min(8, page.locator("[role=treeitem]").count())):
        page.locator("[role=treeitem]").nth(place).click()
    page.click("#row-typical")
    page.fill("#value-0", "60")


def check(visit, path, model, frame, y):
    write_report(model, frame, y, path, sizes=())
    page = visit(path)
    assert page.evaluate("window.tartree.report.recomputable")
    wanted, found = predicted(model, frame), computed(page, len(frame))
    scale = np.maximum(np.abs(wanted).max(axis=0), 1)
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=1e-9)
    assert np.ptp(wanted, axis=0).max() > 0.01
    look_around(page)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_the_page_computes_what_python_computes(visit, tmp_path, name, task):
    options = {"depth": 2, "epochs": 2, "random_state": 0, "device": "cpu", **MODELS[name]}
    temperature = options.pop("temperature", 1.0)
    if options.get("branching") in SPARSE:
        pytest.importorskip("entmax")
    frame = table()
    if options.get("numeric") == "plain":
        frame["sum"] /= 3000  # sums of thousands would saturate every decision
    y = target(frame, task)
    model = (TartClassifier if "classes" in task else TartRegressor)(**options).fit(frame, y)
    if temperature != 1:
        tree = model.tree_
        tree.branching = Branching(tree.structure, tree.branching.activation, temperature, members=model.members)
    far = frame.iloc[:3].assign(age=[1e4, -1e4, 110.0], rate=[0.05, -5.0, 2.0])  # beyond what was seen in training
    shown, known = pd.concat([frame, far], ignore_index=True), np.concatenate([y, y[:3]])
    check(visit, tmp_path / "page.html", stir(model, 0, 0.3), shown, known)


def test_every_activation_is_one_of_the_page():
    names = set(re.findall(r"^  (\w+): ", read("records.js"), re.MULTILINE))
    assert names == set(ACTIVATIONS) | set(OUTPUTS)


@pytest.mark.parametrize("name", [*zoo.PRESETS, "an imported tree"])
def test_named_models(visit, tmp_path, name):
    """The page computes what a named model computes, or says that it cannot, and draws it all the same."""
    frame = table()
    if name == "dndf":  # looks at pictures
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(48, 16)), columns=[f"pixel {k}" for k in range(16)])
        y = np.where(frame["pixel 3"] > 0, "good", "bad")
    else:
        y = target(frame, "three classes")
    if name == "an imported tree":
        frame = frame[["age", "rate"]]
        model = zoo.from_sklearn(DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, y))
    else:
        model = zoo.make(name, random_state=0, device="cpu", **SMALL[name])
        y = y if is_classifier(model) else target(frame, "regression")
        model.fit(frame, y)
    write_report(model, frame, y, tmp_path / "page.html", sizes=())
    page = visit(tmp_path / "page.html")
    assert page.locator("[role=treeitem]").count() >= 1
    if not page.evaluate("window.tartree.report.recomputable"):
        assert "rows cannot be computed here" in page.locator("#prediction").inner_text()
        assert not page.locator("#values-card").is_visible()
        return
    wanted, found = predicted(model, frame), computed(page, len(frame))
    scale = np.maximum(np.abs(wanted).max(axis=0), 1)
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=1e-9)
    look_around(page)
