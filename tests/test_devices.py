"""The public API with the model on another device than the CPU: nothing mixes the two, and results are those of a CPU.

The device is pretended (`pretend_device`), so that a forgotten `.to(device)` fails without a GPU. What is public and
walked nowhere must be listed here with a reason.
"""

import copy
import inspect
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tartree import StructureSearch, TartClassifier, TartRegressor, explain, load, search, zoo
from tartree.estimators.base import ModelAttribute
from tartree.explain.page.report_data import make_record
from tartree.nn import ACTIVATIONS
from tartree.table import ParquetTable
from tartree.training import Recipe

from .pretend_device import DEVICE, auto_is, pretend_device
from .tolerances import on_cpu
from .zoo.test_contract import SMALL

TOLERANCE = 1e-5
CPU = torch.device("cpu")
FAST = {"epochs": 3, "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def _device():
    with pretend_device(), auto_is(DEVICE):
        yield


def table(n_rows=90):
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 80, n_rows).astype(float),
        "bmi": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(25, 4, n_rows)),
        "sex": rng.choice(["f", "m"], n_rows),
    }
    risk = columns["age"] / 20 + (columns["sex"] == "m")
    return pa.table(columns), np.array(["low", "middle", "high"])[np.digitize(risk, [2.5, 4])], risk


X, LABEL, VALUE = table()
SOME = X.slice(0, 4)

MODELS = {
    "classifier": (TartClassifier, {"depth": 3}),
    "regressor": (TartRegressor, {"depth": 2}),
    "two targets": (TartRegressor, {"depth": 2, "leaf_layers": 0}),
    "forest": (TartClassifier, {"depth": 2, "window": 3, "stride": 2, "members": 3}),
    "single": (TartRegressor, {"depth": 3, "selection": "single", "members": 2}),
    "perceptrons": (TartClassifier, {"depth": 2, "decision_layers": 2, "leaf_layers": 2, "hidden": 4}),
    "early stopping": (TartClassifier, {"depth": 2, "early_stopping": "refit"}),
    "readable": (TartClassifier, {}),
    "readable values": (TartRegressor, {"max_features": 2, "early_stopping": "refit"}),
}


def target_of(kind):
    if kind == "two targets":
        return np.stack([VALUE, VALUE**2], axis=1)
    return LABEL if MODELS[kind][0] is TartClassifier else VALUE


def stirred(model):
    """Add noise to every weight, so that rows differ after few epochs."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.tree_.parameters():
            parameter += torch.randn(parameter.shape, generator=generator).to(parameter.device)
    return model


@pytest.fixture(scope="module")
def models():
    made = {}
    for kind, (cls, settings) in MODELS.items():
        made[kind] = stirred(cls(**settings, **FAST).fit(X, target_of(kind)))
    return made


def assert_on_device(model):
    tensors = [*model.tree_.parameters(), *model.tree_.buffers()]
    assert {tensor.device for tensor in tensors} == {DEVICE}


def check(walk, model, *arguments):
    """Compare results on the device and on the CPU; the model stays on its device."""
    result = walk(model, *arguments)
    assert_on_device(model)
    with auto_is(CPU):
        expected = walk(on_cpu(model), *arguments)
    compare(result, expected)


def compare(result, expected):
    assert type(result) is type(expected)
    if isinstance(result, list | tuple):
        assert len(result) == len(expected)
        for part, other in zip(result, expected, strict=True):
            compare(part, other)
    elif isinstance(result, dict):
        compare(list(result.items()), list(expected.items()))
    elif isinstance(result, float) or (isinstance(result, np.ndarray) and result.dtype.kind == "f"):
        np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE)
    elif isinstance(result, np.ndarray):
        np.testing.assert_array_equal(result, expected)
    else:
        assert result == expected


def predictions(model):
    if hasattr(model, "classes_"):
        return model.predict_proba(X)
    return [*model.predict(X, return_std=True), model.predict_quantiles(X, [0.1, 0.9])]


def smaller(model):
    """Predictions of a model that was made from another, which is on the same device."""
    assert next(model.tree_.parameters()).device in (DEVICE, CPU)
    return predictions(model)


def write(model, y, folder):
    model.report(X, y, folder / "page.html", rows=20, sizes=[2])
    return (folder / "page.html").stat().st_size > 10_000


def paths(model):
    paths = model.decision_path(X)
    return [part.toarray() if hasattr(part, "toarray") else part for part in np.atleast_1d(np.array(paths, object))]


#: Public methods of the estimators, by name: functions of a model, its target and a folder.
METHODS = {
    "apply": lambda model, y, folder: model.apply(X),
    "decision_path": lambda model, y, folder: paths(model),
    "explain": lambda model, y, folder: model.explain(SOME, background=X).contributions,
    "feature_importances_": lambda model, y, folder: model.feature_importances_,
    "fit": lambda model, y, folder: len(clone(model).fit(X, y).history_),
    "get_depth": lambda model, y, folder: model.get_depth(),
    "get_n_leaves": lambda model, y, folder: model.get_n_leaves(),
    "harden": lambda model, y, folder: smaller(model.harden(X)),
    "predict": lambda model, y, folder: model.predict(X),
    "predict_proba": lambda model, y, folder: model.predict_proba(X),
    # The median of two members that are far apart is anywhere between them.
    "predict_quantiles": lambda model, y, folder: model.predict_quantiles(X, [0.1, 0.9]),
    "report": write,
    "save": lambda model, y, folder: smaller(saved_and_loaded(model, folder)),
    "score": lambda model, y, folder: model.score(X, y),
    "simplify": lambda model, y, folder: smaller(model.simplify(X, max_leaves=3, max_boxes=8)),
}
REQUESTS = {f"set_{name}_request" for name in ("fit", "predict", "score")}
#: Parameters only, no tree; or steps of what is walked.
NOT_WALKED = {"get_metadata_routing", "get_params", "set_params", *REQUESTS, "spec", "target_kind"}
NOT_WALKED |= {"adopt", "fit_source", "limits_", "model_", "resumed_model", "with_model"}


def saved_and_loaded(model, folder):
    path = folder / "model.tart"
    model.save(path)
    return load(path)


#: What takes long is walked for these models only.
SLOW = {
    "fit": ["classifier", "two targets"],
    "report": ["classifier", "regressor"],
    "simplification_path": ["forest"],
    "simplify": ["classifier", "single"],
}


def pairs(names, kinds):
    """Each name with the kinds of models to walk."""
    return [(name, kind) for name in names for kind in SLOW.get(name, kinds) if hasattr(MODELS[kind][0], name)]


@pytest.mark.parametrize(("name", "kind"), pairs(METHODS, MODELS))
def test_methods(models, kind, name, tmp_path):
    check(METHODS[name], models[kind], target_of(kind), tmp_path)


@pytest.mark.parametrize("cls", [TartClassifier, TartRegressor])
def test_no_method_is_forgotten(cls):
    attributes = {name for name in dir(cls) if isinstance(inspect.getattr_static(cls, name), ModelAttribute)}
    public = {name for name in dir(cls) if not name.startswith("_")} - attributes
    assert public <= set(METHODS) | NOT_WALKED


@pytest.mark.parametrize("kind", MODELS)
def test_a_file_has_no_device(models, kind, tmp_path):
    """A model that was trained elsewhere predicts the same where it is loaded, and back."""
    model = models[kind]
    model.save(tmp_path / "model.tart")
    with auto_is(CPU):
        restored = load(tmp_path / "model.tart")
    assert {tensor.device for tensor in restored.tree_.parameters()} == {CPU}
    compare(predictions(model), predictions(restored))
    restored.save(tmp_path / "again.tart")
    assert (tmp_path / "again.tart").read_bytes() == (tmp_path / "model.tart").read_bytes()
    assert_on_device(load(tmp_path / "again.tart"))


def test_copies_stay_on_the_device(models):
    model = models["classifier"]
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_on_device(again)
        compare(predictions(again), predictions(model))


# Training


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_activations(activation):
    if activation in ("sparsemax", "entmax15"):
        pytest.importorskip("entmax")
    model = TartClassifier(depth=2, window=3, branching=activation, **FAST).fit(X, LABEL)
    check(lambda model: model.predict_proba(X), model)


@pytest.mark.parametrize(
    "settings",
    [
        {"recipe": Recipe(balance=0.1)},
        {"recipe": Recipe(loss="mixture")},
        {"recipe": Recipe(optimizer="lbfgs"), "depth": 0},
        {"batch_size": 20},
        {"early_stopping": True},
        {"class_weight": "balanced"},
        {"numeric": "quantile"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:L-BFGS ended before the optimum")
def test_training(settings):
    model = TartClassifier(**{"depth": 2, **FAST, **settings}).fit(X, LABEL, np.arange(len(LABEL)) % 3)
    check(lambda model: model.predict_proba(X), model)
    model.set_params(warm_start=True).fit(X, LABEL)
    assert_on_device(model)


@pytest.mark.parametrize("early_stopping", ["auto", True])
@pytest.mark.parametrize("cls", [TartClassifier, TartRegressor])
def test_defaults_of_larger_tables(cls, early_stopping):
    """From 1,000 rows on, depth follows the rows."""
    larger, labels, values = table(1000)
    y = labels if cls is TartClassifier else values
    model = cls(epochs=2, early_stopping=early_stopping, random_state=0).fit(larger, y)
    check(lambda model: model.predict(larger), model)


@pytest.mark.parametrize("early_stopping", [False, True, "refit"])
@pytest.mark.parametrize("cls", [TartClassifier, TartRegressor])
def test_streams(cls, early_stopping, tmp_path):
    whole = X.append_column("target", pa.array(LABEL if cls is TartClassifier else VALUE))
    whole = whole.append_column("weight", pa.array(np.ones(len(VALUE))))
    pq.write_table(whole, tmp_path / "rows.parquet", row_group_size=30)
    rows = ParquetTable(tmp_path, in_memory=False)
    model = cls(depth=2, batch_size=30, early_stopping=early_stopping, **FAST).fit(rows, "target", "weight")
    assert model.streamed_
    check(lambda model: [model.predict(rows), model.score(rows, "target")], model)
    check(lambda model: model.feature_importances_, model)


# Explanations


#: Functions of `tartree.explain`, by name: functions of a model and its target.
EXPLANATIONS = {
    "counterfactual": lambda model, y: (
        str(
            explain.counterfactual(
                model,
                X.slice(0, 1),
                X,
                target=None if hasattr(model, "classes_") else float(np.quantile(model.predict(X), 0.6)),
            )
        )
        != ""
    ),
    "describe_leaves": lambda model, y: [leaf.arrival for leaf in explain.describe_leaves(model, X, y)],
    "explain_rows": lambda model, y: explain.explain_rows(model, SOME).contributions,
    "export_dot": lambda model, y: explain.export_dot(model, X, y),
    "export_mermaid": lambda model, y: explain.export_mermaid(model, X, y),
    "export_text": lambda model, y: explain.export_text(model),
    "harden": lambda model, y: explain.harden(model, X).hardening_.agreement,
    "importances": lambda model, y: explain.importances(model, X, y),
    "simplification_path": lambda model, y: [
        smaller(step) for step in explain.simplification_path(model, X, [2], max_boxes=8)
    ],
    "simplify": lambda model, y: explain.simplify(model, X, max_leaves=3, max_boxes=8).certificate_.measured,
    "view": lambda model, y: explain.view(model, X, y).n_leaves,
}
RECORDS = {"Certificate", "Counterfactual", "Explanation", "Hardening", "LeafDescription", "RowExplanation", "TreeView"}


@pytest.mark.parametrize("kind", ["classifier", "regressor", "forest", "single", "perceptrons"])
@pytest.mark.parametrize("name", sorted(set(EXPLANATIONS) - set(SLOW)))
def test_explanations(models, kind, name):
    check(EXPLANATIONS[name], models[kind], target_of(kind))


def test_counterfactuals_hold_in_both_precisions():
    """A counterfactual ends right behind a boundary: the device, in single precision, must see it crossed too."""
    model = TartClassifier(depth=1, random_state=0).fit(X, LABEL)
    others = [explain.counterfactual(model, X.slice(row, 1), X) for row in range(30)]
    others = [other for other in others if other]
    assert len(others) > 20
    for other in others:
        assert model.predict(other.row)[0] == other.after == on_cpu(model).predict(other.row)[0] != other.before


def test_a_page_agrees_with_itself(models):
    """Predictions on the page are those that it computes, in double precision."""
    result, expected = (
        make_record(model, X, VALUE, rows=90, sizes=[]) for model in (models["regressor"], on_cpu(models["regressor"]))
    )
    assert result == expected


@pytest.mark.parametrize(("name", "kind"), [(name, SLOW[name][0]) for name in sorted(set(EXPLANATIONS) & set(SLOW))])
def test_slow_explanations(models, kind, name):
    check(EXPLANATIONS[name], models[kind], target_of(kind))


def test_no_explanation_is_forgotten():
    assert set(explain.__all__) == set(EXPLANATIONS) | RECORDS  # records are plain data, which functions return


@pytest.mark.parametrize(
    "settings",
    [{"decision": zoo.PRESETS[name].parameters["decision"], "leaf_layers": 0} for name in ("dt", "sdt", "ndf")],
    ids=["axis", "soft", "subspace"],
)
def test_explanations_of_other_decisions(settings):
    model = stirred(TartClassifier(depth=2, **settings, **FAST).fit(X, LABEL))
    for name in ("explain_rows", "export_text", "importances", "view", "describe_leaves"):
        check(EXPLANATIONS[name], model, LABEL)


def test_a_smaller_model_can_be_trained_and_explained(models):
    """Its structure is irregular."""
    model = models["classifier"].simplify(X, max_leaves=3, max_boxes=8)
    assert_on_device(model)
    check(METHODS["explain"], model, LABEL, None)
    check(METHODS["feature_importances_"], model, LABEL, None)


def test_pictures(models):
    pytest.importorskip("matplotlib").use("agg")
    from tartree.explain import plots

    model = models["classifier"]
    readable = TartClassifier(readable=True, **FAST).fit(X, LABEL)
    assert explain.export_text(readable, X, LABEL, max_terms=100).startswith("all rows: ")
    walked = {
        "plot_assignment": lambda: plots.plot_assignment(model, X),
        "plot_condition": lambda: plots.plot_condition(model, X),
        "plot_contributions": lambda: plots.plot_contributions(model, SOME),
        "plot_curves": lambda: (plots.plot_curves(readable), plots.plot_curves(readable, X)),
        "plot_history": lambda: plots.plot_history(model),
        "plot_importances": lambda: plots.plot_importances(model),
        "plot_leaves": lambda: plots.plot_leaves(model, X, LABEL),
        "plot_transition_matrices": lambda: plots.plot_transition_matrices(model, X),
        "plot_tree": lambda: plots.plot_tree(model, X, LABEL),
    }
    assert set(walked) == set(plots.__all__)
    for draw in walked.values():
        draw()


# Zoo


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", zoo.PRESETS)
def test_zoo(name, task, tmp_path):
    if (name == "lr" and task == "regression") or (name == "nrf" and task == "classification"):
        pytest.skip("a model of the other task")
    rng = np.random.default_rng(0)
    rows = rng.random((40, 64))
    model = zoo.make(name, task=task, random_state=0, **SMALL[name])
    model.fit(rows, rng.choice(["a", "b", "c"], 40) if task == "classification" else rows[:, 0])
    assert_on_device(model)
    check(lambda model: model.predict(rows), model)
    check(lambda model: predictions_of(saved_and_loaded(model, tmp_path), rows), model)
    check(lambda model: len(model.explain(rows[:2]).contributions), model)


def predictions_of(model, rows):
    return model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)


def test_imports_and_exports():
    numbers = np.stack([X["age"].to_numpy(), np.nan_to_num(X["bmi"].to_numpy(), nan=25)], axis=1)
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(numbers, LABEL)
    grown = DecisionTreeRegressor(max_depth=2, random_state=0).fit(numbers, VALUE)
    forest = zoo.from_sklearn(RandomForestClassifier(3, max_depth=2, random_state=0).fit(numbers, LABEL))
    assert forest.predict_proba(numbers).shape == (len(LABEL), 3)
    for source, y in ((cart, LABEL), (grown, VALUE)):
        imported = zoo.from_sklearn(source)
        np.testing.assert_array_equal(imported.predict(numbers), source.predict(numbers))
        assert len(explain.explain_rows(imported, numbers[:2]).contributions) == 2
        for make in (zoo.soften, zoo.warm_start):
            model = make(source, numbers, y, random_state=0)
            assert_on_device(model)
            check(lambda model: model.predict(numbers), model)
            check(lambda model: model.explain(numbers[:2]).contributions, model)
    for cls, y in ((TartClassifier, LABEL), (TartRegressor, VALUE)):
        name = {"decision": zoo.PRESETS["dt"].parameters["decision"], "leaf_layers": 0, "selection": "single"}
        model = cls(depth=3, **name, **FAST).fit(numbers, y)
        check(lambda model: zoo.to_sklearn(model).predict(numbers), model)


def test_alternating():
    model = zoo.make("ndf", random_state=0, **SMALL["ndf"])
    zoo.fit_alternating(model, X, LABEL, rounds=2, iterations=2)
    assert_on_device(model)
    zoo.update_leaves(model, X, LABEL, iterations=2)
    check(lambda model: model.predict_proba(X), model)


def test_nothing_of_the_zoo_is_forgotten():
    walked = {"fit_alternating", "from_sklearn", "make", "soften", "to_sklearn", "update_leaves", "warm_start"}
    records = {"ImportedClassifier", "ImportedRegressor", "PRESETS", "Preset", "table"}  # no tree that is trained
    assert set(zoo.__all__) == walked | records


# Search


@pytest.mark.parametrize("cls", [TartClassifier, TartRegressor])
def test_search(cls):
    y = LABEL if cls is TartClassifier else VALUE
    space = {"depth": [0, 1, 2], "leaf_layers": [0, 1], "selection": ["multi", "single"]}
    fitted = StructureSearch(cls(epochs=6), space, folds=2, random_state=0).fit(X, y)
    best = fitted.best_estimator_
    assert_on_device(best)
    assert not [trial for trial in fitted.trials_ if trial["state"] == "failed"]
    with auto_is(CPU):
        again = StructureSearch(cls(epochs=6), space, folds=2, random_state=0).fit(X, y)
    assert fitted.best_params_ == again.best_params_
    np.testing.assert_allclose(fitted.best_score_, again.best_score_, atol=1e-4)
    compare(fitted.predict(X), best.predict(X))
    assert fitted.score(X, y) == best.score(X, y)
    assert len(fitted.explain(SOME).contributions) == 4
    assert fitted.front_
    check(lambda model: search.size_of(model, X).leaves, best)
    if cls is TartClassifier:
        assert fitted.predict_proba(X).shape == (len(LABEL), 3)
        assert search.baseline_scores(fitted, X, y)


def test_nothing_of_the_search_is_forgotten():
    public = {name for name in dir(StructureSearch) if not name.startswith("_")}
    walked = {"explain", "fit", "front_", "predict", "predict_proba", "score", "trials_"}
    assert public <= walked | NOT_WALKED
    walked = {"StructureSearch", "baseline_scores", "size_of"}
    plain = {"PAPER_SERIES", "SPACES", "Size", "expand", "plot_front"}  # scores and sizes only
    assert set(search.__all__) == walked | plain
