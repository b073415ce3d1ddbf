"""Accuracy at an equal reading budget: counts of numbers, choice within the budget, the drawn tree, and the page."""

import numpy as np
import pytest
import reading
import reading_models
import reading_page
from drawn_tree import drawn_labels, drawn_leaves
from reading_models import READERS, Candidate, Reader, fit_best
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from uci.results import Results

from tartree import TartClassifier


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def within(name, X, y, budget=45):
    candidates = list(READERS[name].candidates(X, y, 0, budget))
    assert any(candidate.numbers <= budget for candidate in candidates)
    return candidates


def test_numbers_of_trees_and_linear_models(iris):
    X, y = iris
    for candidate in within("CART", X, y):
        tree = candidate.fitted.tree_
        leaves = tree.children_left == -1
        assert candidate.numbers == (~leaves).sum() + 3 * leaves.sum()  # a threshold each, three shares each
    cart, labels = within("CART", X, y)[-1], within("CART-labels", X, y)[-1]
    assert labels.fitted.get_n_leaves() >= cart.fitted.get_n_leaves()
    assert labels.numbers == 2 * labels.fitted.get_n_leaves() - 1
    for candidate in within("L1", X, y, budget=9):
        assert candidate.numbers == (candidate.fitted[-1].coef_ != 0).sum() + 3
    assert max(candidate.numbers for candidate in within("L1", X, y, budget=9)) == 9

    binary = y != 0
    tree = reading_models.DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X[binary], y[binary])
    assert reading_models.tree_numbers(tree.get_n_leaves(), 1) == 7


def test_constants_that_the_model_counts_are_counted_alike():
    X, y = np.arange(40.0)[:, None], np.arange(40) // 20
    model = TartClassifier(depth=2, leaf_layers=0, epochs=1, random_state=0).fit(X, y)
    # A decision is a weight and a bias there, and one threshold here.
    assert model.reading_size_.numbers == reading_models.tree_numbers(4, 1) + 3


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_most_terms_fill_the_budget(iris, depth, classes):
    X, y = iris[0][iris[1] < classes], iris[1][iris[1] < classes]
    terms = reading_models.most_terms(classes, depth, 25)
    printed = 1 if classes == 2 else classes
    full = 2 * (2**depth - 1) + printed * (2**depth + terms)
    assert 25 - printed < full <= 25
    model = reading_models.fit_readable(X, y, 0, depth, "standard", terms, epochs=3)
    assert all(feature.bin is None for feature in model.encoder_.features_)
    assert model.reading_size_.numbers <= full


def test_a_curve_counts_its_points():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3]
    assert reading_models.curve_numbers(X) == 18
    model = reading_models.fit_readable(X, y, 0, 0, "curve", 2, epochs=3)
    assert model.reading_size_.numbers == 1 + 2 * 18
    assert reading_models.most_terms(2, 0, 45, of_term=18) == 2


def test_sizes_of_simplified_models_keep_the_budget(iris):
    for n_classes in (2, 3, 5, 10, 40, 46):
        sizes = reading_models.simplified_sizes(n_classes, 64, 45)
        outputs = reading_models.outputs(n_classes)
        assert bool(sizes) == (2 * outputs <= 45)
        assert all((terms + 1) * (leaves - 1 + leaves * outputs) <= 45 for leaves, terms in sizes)
    assert reading_models.simplified_sizes(10, 1, 45)[0] == (4, 3)  # a model without decisions

    X, y = iris
    for binary in (False, True):
        rows = y != 0 if binary else y >= 0
        model = TartClassifier(epochs=5, random_state=0).fit(X[rows], y[rows])
        small = model.simplify(X[rows], max_leaves=3, max_terms=2, max_boxes=1)
        numbers = reading_models.separate_numbers(small.model_)
        assert numbers == 2 * 3 + (1 if binary else 3) * 3 * 3  # functions of two columns and a constant
        assert numbers <= small.reading_size_.numbers


def test_the_readable_tree_keeps_the_budget(iris, monkeypatch):
    X, y = iris
    monkeypatch.setattr(reading_models, "READABLE", ((1, "standard"), (0, "curve")))
    candidates = within("readable-45", X, y)
    assert [candidate.settings for candidate in candidates] == ["depth=1, numeric='standard', max_terms=12"]
    assert candidates[0].fitted.reading_size_.numbers == candidates[0].numbers <= 45
    assert list(READERS["readable-45"].candidates(X, np.arange(150) // 2, 0, 45)) == []


def constant(label, numbers):
    def fit(X, y):
        return DummyClassifier(strategy="constant", constant=label).fit(X, y)

    def candidate(X, y):
        return Candidate(f"always {label}", fit(X, np.append(y[1:], label)), numbers, fit)

    return candidate


def test_the_best_candidate_within_the_budget_is_chosen():
    X, y = np.zeros((40, 1)), np.repeat([0, 1, 1, 2], 10)

    def choice(*candidates, **settings):
        made = [candidate(X, y) for candidate in candidates]
        return fit_best(Reader("fake", "fake", lambda *_: iter(made), **settings), X, y, 0, budget=10).settings

    assert choice(constant(0, 3), constant(1, 9), constant(2, 2)) == "always 1"
    assert choice(constant(0, 3), constant(1, 11)) == "always 0"
    assert choice(constant(0, 3), constant(2, 2)) == "always 2"  # of equal ones the smallest
    assert choice(constant(0, 11)) == choice() == "the most frequent class"
    assert choice(constant(0, 11), is_limited=False) == "always 0"
    assert fit_best(READERS["CART"], X, np.zeros(40, dtype=int), 0).numbers == 0


def test_inner_splits_use_all_rows_once_or_hold_out_a_quarter():
    y = np.repeat([0, 1], 30)
    splits = reading_models.inner_splits(y, 0)
    assert sorted(np.concatenate([held for _, held in splits]).tolist()) == list(range(60))
    assert all(set(train).isdisjoint(held) for train, held in splits)
    ((train, held),) = reading_models.inner_splits(np.repeat(y, 20), 0)
    assert (len(train), len(held)) == (900, 300)
    assert len(reading_models.inner_splits(np.arange(6), 0)) == 3  # every class has one row


def test_drawn_paths_of_hard_trees_give_the_label(iris):
    X, y = iris
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(X, y)
    assert model.structure_.n_leaves > 1
    assert np.array_equal(drawn_labels(model.model_, X), model.predict(X))
    names = np.array(["a", "b", "c"])[y]
    linear = TartClassifier(readable=True, depth=0, epochs=5, random_state=0).fit(X, names)
    assert np.array_equal(drawn_labels(linear.model_, X), linear.predict(X))


@pytest.mark.parametrize("leaf_layers", [0, 1])
def test_drawn_paths_end_in_the_leaf_of_the_largest_arrival(iris, leaf_layers):
    X, y = iris
    soft = TartClassifier(depth=3, leaf_layers=leaf_layers, epochs=5, random_state=0).fit(X, y)
    for model in (soft.harden(X), soft.simplify(X, max_leaves=5).harden(X)):
        first_leaf = sum(model.structure_.widths[:-1])
        leaves = drawn_leaves(model.model_, model.model_.encode(X).numpy())
        assert np.array_equal(leaves + first_leaf, model.apply(X))
        assert np.array_equal(drawn_labels(model.model_, X), model.predict(X))
    assert not model.structure_.is_regular


def test_only_single_trees_are_drawn(iris):
    X, y = iris
    for settings in ({"members": 2}, {"window": 3}):
        model = TartClassifier(depth=1, epochs=1, **settings).fit(X, y)
        with pytest.raises(ValueError, match="one tree with at most two children"):
            drawn_labels(model.model_, X)
    perceptrons = TartClassifier(depth=1, decision_layers=2, epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="linear decisions"):
        drawn_labels(perceptrons.model_, X)


def test_a_run_resumes_and_records_failures(cache, monkeypatch):
    results = Results(cache / "reading.jsonl")
    readers = [READERS["CART"], Reader("L1", "broken", lambda *_: int("no"))]
    assert reading.run(readers, ["iris", "monks-1"], results, float("inf"), retry=False)
    lines = results.read()
    assert len(lines) == 4
    assert lines["L1", "iris"]["failure"].startswith("ValueError")
    line = lines["CART", "iris"]
    assert len(line["accuracy"]) == len(line["numbers"]) == len(line["settings"]) == 4
    assert max(line["numbers"]) <= 45
    assert "agreement" not in line

    monkeypatch.setattr(reading, "measure", lambda *_: pytest.fail("everything is done"))
    assert reading.run(readers, ["iris", "monks-1"], results, float("inf"), retry=False)
    assert not reading.run(readers, ["iris"], results, -1.0, retry=True)
    reading.forget(results, ["CART"], ["iris"])
    assert ("CART", "iris") not in results.read()
    assert ("CART", "monks-1") in results.read()


def test_the_drawn_tree_is_compared_with_the_model(cache):
    data = reading.load_set("iris")

    def candidates(X, y, seed, budget):
        model = TartClassifier(readable=True, epochs=10, random_state=seed).fit(X, y)
        yield Candidate("ten epochs", model, model.reading_size_.numbers, None)

    measured = reading.score(Reader("ours", "ours", candidates, is_limited=False, draws=True), data, 0)
    assert measured["agreement"] == 1.0
    assert measured["settings"] == "ten epochs"


def test_the_command_writes_a_page(cache, capsys):
    out = cache / "page" / "reading"
    assert reading.main(["--models", "CART", "CART-labels", "--sets", "iris", "wine", "--out", str(out)]) == 0
    assert reading.main(["--models", "CART", "--sets", "iris", "--again", "--out", str(out)]) == 0
    assert "[1/1] iris: CART" in capsys.readouterr().out
    text = out.with_name("reading.md").read_text()
    assert "2 of 3 small sets and 0 of 0 medium sets" in text
    assert "| iris | 40 x 3 | 2 |" in text
    with pytest.raises(SystemExit):
        reading.main(["--sets", "rose", "--out", str(out)])


def line(model, name, accuracy, numbers, **more):
    facts = {"group": "small", "rows": 100, "features": 4, "classes": 2, "failure": None}
    machine = {"tartree": "1", "torch": "2", "sklearn": "3", "python": "4"}
    runs = {"accuracy": accuracy, "numbers": numbers, "settings": ["x"] * len(accuracy)}
    return {"model": model, "set": name, **facts, **runs, "machine": machine, **more}


def test_the_page_compares_models_on_the_sets_they_share():
    groups = {"a": "small", "b": "small", "c": "medium", "d": "large"}
    lines = [
        line("readable-45", "a", [0.5, 0.7], [10, 20], agreement=[1.0, 0.5]),
        line("readable-45", "b", [0.9, 0.9], [40, 44], agreement=[1.0, 1.0]),
        line("readable-45", "c", [0.4, 0.4], [40, 44], group="medium", agreement=[1.0, 1.0]),
        line("CART", "a", [0.6, 0.7], [5, 5]),
        line("CART", "b", [0.8, 0.8], [7, 7]),
        {**line("CART", "c", [], []), "failure": "ValueError: a|b"},
    ]
    page = reading_page.page(lines, groups)
    assert "2 of 2 small sets and 0 of 1 medium sets" in page
    assert "| `TartClassifier(readable=True)`, 45 numbers | 75.0 | 28 | - | - | 3 |" in page
    assert "| CART | 72.5 | 6 | - | - | 2 |" in page
    assert "| CART | 2 | 1 / 0 / 1 | +2.50 | a (-5.0) |" in page
    assert "| 3 | 91.67 % | 75.00 % (a) |" in page
    assert "| a | 100 x 4 | 2 | 60.0 (15) | **65.0** (5) |" in page
    assert "| c | CART | ValueError: a\\|b |" in page
    assert "Nothing has been measured." in reading_page.page([], groups)
