"""Parameters that limit how much is listed, written or drawn do so: neither less than asked for, nor more."""

import inspect
import re

import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest

from tartree import TartClassifier, explain
from tartree.explain import plots
from tartree.explain.page import report_data, write_report
from tests.explain.models import stir

N_COLUMNS = 20
KINDS = {"linear": {}, "networks": {"decision_layers": 2, "leaf_layers": 2, "hidden": 4}}


def fitted(kind):
    """A model that looks at 20 columns, in decisions and in leaves."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, N_COLUMNS)), columns=[f"c{k:02d}" for k in range(N_COLUMNS)])
    y = np.where(table["c00"] + table["c01"] > 0, "yes", "no")
    model = TartClassifier(depth=2, epochs=3, random_state=0, device="cpu", **KINDS[kind]).fit(table, y)
    return stir(model, 0, 0.5), table, y


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return fitted(request.param)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def linear():
    return fitted("linear")


def only(counts):
    """The one count that all have."""
    assert len(set(counts)) == 1, counts
    return counts[0]


def named(line):
    """How many columns a line names."""
    return len(set(re.findall(r"\bc\d\d\b", line)))


def graph_terms(text):
    """Terms that each decision of a graph writes."""
    labels = [line for line in text.splitlines() if "left where" in line]
    assert len(labels) == 3
    return only([named(label.replace("\\n", " ")) for label in labels])


def terms_of(tree):
    member = tree.members[0]
    functions = [own for c in (*member.conditions, *member.leaf_models) if c for own in c.functions]
    return only([len(function.terms) for function in functions])


def text_terms(text):
    lines = [line for line in text.splitlines() if named(line)]
    assert len(lines) == 6 + 4  # branches and leaves
    for line in lines:
        if "smaller term" in line:  # those that are not written out are counted
            assert named(line) + int(re.search(r"(\d+) smaller term", line)[1]) == N_COLUMNS
        elif "mostly of" not in line:
            assert named(line) == N_COLUMNS
    return only([named(line) for line in lines])


def depth_text(model, max_depth):
    return explain.export_text(model, max_depth=max_depth, show_leaf_terms=False)


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def card_labels(ax):
    """Of the cards of decisions, the lines that name a column."""
    names = [text.get_text() for text in ax.texts if re.match(r"c\d\d", text.get_text())]
    return len(names) / 7  # decisions and leaves


#: For each function and its parameter: how much there is with a limit, and the most there can be.
COUNTS = {
    ("explain.view", "max_terms"): (lambda m, X, y, k: terms_of(explain.view(m, X, y, max_terms=k)), N_COLUMNS),
    ("explain.export_text", "max_terms"): (
        lambda m, X, y, k: text_terms(explain.export_text(m, X, y, max_terms=k)),
        N_COLUMNS,
    ),
    ("explain.export_dot", "max_terms"): (
        lambda m, X, y, k: graph_terms(explain.export_dot(m, X, y, max_terms=k)),
        N_COLUMNS,
    ),
    ("explain.export_mermaid", "max_terms"): (
        lambda m, X, y, k: graph_terms(explain.export_mermaid(m, X, y, max_terms=k)),
        N_COLUMNS,
    ),
    ("explain.explain_rows", "max_terms"): (
        lambda m, X, y, k: only(
            [len(step.terms) for path in explain.explain_rows(m, X[:2], max_terms=k)[0].paths for step in path.steps]
        ),
        N_COLUMNS,
    ),
    ("explain.explain_rows", "max_paths"): (
        lambda m, X, y, k: len(explain.explain_rows(m, X[:2], share=1.0, max_paths=k)[0].paths),
        4,
    ),
    ("explain.view", "typical"): (
        lambda m, X, y, k: max(len(n.typical_rows) for n in explain.view(m, X, y, typical=k).members[0].nodes),
        None,  # as many as there are
    ),
    ("explain.describe_leaves", "typical"): (
        lambda m, X, y, k: max(len(leaf.typical_rows) for leaf in explain.describe_leaves(m, X, y, typical=k)),
        None,  # as many as there are
    ),
    ("explain.describe_leaves", "max_special"): (
        lambda m, X, y, k: max(len(leaf.special) for leaf in explain.describe_leaves(m, X, y, max_special=k)),
        None,  # as many as there are
    ),
    ("explain.export_text", "max_depth"): (
        lambda m, X, y, k: max(line.count("|   ") for line in depth_text(m, k).splitlines()),
        2,
    ),
    ("plots.plot_condition", "max_terms"): (
        lambda m, X, y, k: len(labels(plots.plot_condition(m, X, max_terms=k))),
        N_COLUMNS,
    ),
    ("plots.plot_tree", "max_terms"): (
        lambda m, X, y, k: card_labels(plots.plot_tree(m, X, y, detail="cards", max_terms=k)),
        N_COLUMNS,
    ),
    ("explain.RowExplanation.text", "most"): (
        lambda m, X, y, k: explain.explain_rows(m, X[:2])[0].text(most=k).partition("reference row")[2].count("\n"),
        N_COLUMNS,
    ),
    ("explain.RowExplanation.strongest", "most"): (
        lambda m, X, y, k: len(explain.explain_rows(m, X[:2])[0].strongest(most=k)),
        N_COLUMNS,
    ),
    ("write_report", "rows"): (
        lambda m, X, y, k: len(report_data.make_record(m, X, y, rows=k, sizes=())["rows"]["numbers"]),
        90,
    ),
}  # fmt: skip
#: Those whose effect is not a plain count, and the tests below.
OTHERS = {
    ("plots.plot_contributions", "max_columns"),
    ("plots.plot_curves", "max_columns"),
    ("plots.plot_importances", "max_features"),
    ("explain.counterfactual", "max_columns"),
    ("explain.simplify", "max_leaves"),
    ("explain.simplify", "max_terms"),
    ("explain.simplify", "max_boxes"),
    ("explain.simplification_path", "max_boxes"),
}


def limits():
    """Every parameter of a public function that limits something, by its name."""
    things = {f"explain.{name}": getattr(explain, name) for name in explain.__all__}
    things |= {f"plots.{name}": getattr(plots, name) for name in plots.__all__}
    things["write_report"] = write_report
    for name, cls in list(things.items()):
        if inspect.isclass(cls):
            del things[name]
            methods = inspect.getmembers(cls, inspect.isfunction)
            things |= {f"{name}.{own}": method for own, method in methods if not own.startswith("_")}
    return {
        (name, parameter)
        for name, thing in things.items()
        for parameter in inspect.signature(thing).parameters
        if parameter.startswith("max_") or parameter in ("typical", "most", "rows")
    }


def test_every_limit_is_tested():
    assert limits() == set(COUNTS) | OTHERS


@pytest.mark.parametrize("limit", COUNTS, ids=".".join)
def test_as_many_as_asked_for(model, limit):
    count, most = COUNTS[limit]
    if most is None:
        most = count(*model, 1000)
        assert most > 3
    plotted = limit[0].startswith("plots")
    for k in (1, 2, 3, 4, 13, 20, 40) if not plotted else (1, 4, 13, 40):
        assert count(*model, k) == min(k, most)


def test_a_view_with_fewer_terms_counts_the_others(linear):
    text = explain.export_text(explain.view(linear[0], max_terms=5), max_terms=9)
    assert text.count(" + 15 smaller terms") == len([line for line in text.splitlines() if named(line)])
    few = explain.view(fitted("networks")[0], linear[1], max_terms=5)
    assert "by 5 of 20 features" in plots.plot_condition(few, max_terms=9).get_title("left")


def test_bars_of_columns(linear):
    model, X, y = linear
    for k in (1, 7, 19, 20, 40):  # the last one left has a bar of its own
        shown = [label for label in labels(plots.plot_contributions(model, X, max_columns=k)) if named(label)]
        assert len(shown) == (k if k < N_COLUMNS - 1 else N_COLUMNS)
        assert len(labels(plots.plot_importances(model, X, y, max_features=k))) == len(shown)


def test_panels_of_curves(linear):
    _, X, y = linear
    model = TartClassifier(readable=True, depth=1, epochs=5, random_state=0).fit(X, y)
    most = len(plots.plot_curves(model, max_columns=40).axes)
    assert most > 4
    for k in (1, 4, 7):
        assert len(plots.plot_curves(model, max_columns=k).axes) == min(k, most)


def test_columns_of_a_change(linear):
    model, X, _ = linear
    found = [explain.counterfactual(model, X[i : i + 1], X, max_columns=k) for i in range(20) for k in (1, 2)]
    assert max(len(own.changes) for own in found[::2]) == 1
    assert max(len(own.changes) for own in found[1::2]) == 2


def test_sizes_of_simpler_models(linear):
    model, X, _ = linear
    sizes = {k: explain.simplify(model, X, tolerance=0.3, max_leaves=k).get_n_leaves() for k in (1, 2, 3)}
    assert sizes[1] == 1
    assert sizes[2] <= 2
    assert sizes[3] <= 3
    few = explain.simplify(model, X, tolerance=0.3, max_leaves=2, max_terms=4)
    functions = [own for c in few_functions(few) for own in c.functions]
    assert max(own.n_terms for own in functions) <= 4


def few_functions(model):
    member = explain.view(model).members[0]
    return [c for c in (*member.conditions, *member.leaf_models) if c]


def test_boxes_of_a_bound(linear):
    model, X, _ = linear
    one, many = (explain.simplify(model, X, max_leaves=3, max_boxes=k).certificate_.bound for k in (1, 256))
    assert many < one or one == many == 0
    one, many = (explain.simplification_path(model, X, [3], max_boxes=k)[0].certificate_.bound for k in (1, 256))
    assert many < one
