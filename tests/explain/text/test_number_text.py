"""Numbers in sentences: what is shown, typed back, gives what is claimed."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest
import torch

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.page import write_report
from tartree.explain.text.curve_terms import Curve
from tartree.explain.text.number_text import at_most, candidates, exact_text, percent, probability_text, rounded
from tartree.explain.text.terms import _curve_texts, threshold_text
from tartree.explain.verification.certificates import Certificate
from tartree.table import Feature, Scaling
from tests.explain.models import stir
from tests.explain.text.followed_text import FollowedText

UNITS = ["small", "large", "whole", "narrow", "day", "time", "since", "level"]


def table(n_rows=160, seed=0):
    """Columns of every unit, with numbers of very different sizes."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "small": draw.normal(3e-4, 1e-4, n_rows),
            "large": draw.normal(4.5e6, 1.2e6, n_rows),
            "whole": draw.integers(4, 72, n_rows),
            "narrow": 1013.25 + draw.normal(0, 1e-3, n_rows),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 900, n_rows), unit="D"),
            "time": pd.Timestamp("2021-06-01") + pd.to_timedelta(draw.integers(0, 10**6, n_rows), unit="s"),
            "since": pd.to_timedelta(draw.uniform(1, 90_000, n_rows).round(3), unit="s"),
            "level": draw.choice(["a", "b", "c"], n_rows),
        }
    )
    return frame, np.array(["low", "middle", "high"])[draw.integers(0, 3, n_rows)]


def fitted(names, **options):
    frame, y = table()
    model = TartClassifier(depth=2, epochs=2, random_state=0, device="cpu", **options).fit(frame[names], y)
    return stir(model, 0, 1.0), frame[names]


def typed_back(text, row):
    """The row with the values of a sentence, as somebody would type them."""
    typed = row.copy()
    found = re.findall(r"(?:, if|(?<=\S) and) (\w+) were (.+?) instead of .+?(?= and \w+ were |$)", text)
    assert found, text
    for name, value in found:
        kind = row[name].dtype
        if kind.kind == "m":
            typed[name] = pd.to_timedelta(float(value.removesuffix(" s")), unit="s")
        elif kind.kind == "M":
            typed[name] = pd.Timestamp(value)
        elif kind.kind in "fi":
            typed[name] = float(value)
        else:
            typed[name] = value
    return typed, found


@pytest.mark.parametrize(
    ("names", "options"),
    [([name], {}) for name in UNITS if name not in ("level", "whole")]
    + [(UNITS, {}), (UNITS, {"selection": "single"}), (["small", "large", "narrow"], {"numeric": "quantile"})],
    ids=str,
)
def test_a_counterfactual_typed_back_changes_the_prediction(names, options):
    model, frame = fitted(names, **options)
    n_found = 0
    for i in range(0, len(frame), 8):
        row = frame[i : i + 1]
        other = explain.counterfactual(model, row, frame, max_columns=min(2, len(names)))
        if not other:
            continue
        typed, values = typed_back(str(other), row)
        n_found += 1
        assert model.predict(typed)[0] == other.after != model.predict(row)[0], str(other)
        assert len(values) == len(other.changes)
        for change in other.changes:
            assert change.size < 20
    assert n_found >= 8


def test_few_digits():
    """No more digits than it takes, and no digit that moves the value by more than a thousandth of its spread."""
    model, frame = fitted(["small", "large", "narrow"])
    texts = [str(explain.counterfactual(model, frame[i : i + 1], frame)) for i in range(0, 160, 8)]
    numbers = re.findall(r"were (\S+) instead", " ".join(texts))
    digits = [len(re.sub(r"e.*|\D", "", text.lstrip("-0.")).strip("0")) for text in numbers]
    assert np.median(digits) <= 5
    assert max(digits) <= 12


def test_a_regression_reaches_what_it_says():
    frame, _ = table()
    values = frame["large"].to_numpy() / 1e6 + frame["whole"].to_numpy()
    model = TartRegressor(depth=2, epochs=20, random_state=0, device="cpu").fit(frame[["large", "whole"]], values)
    n_found = 0
    for i in range(0, 60, 6):
        row = frame[["large", "whole"]][i : i + 1]
        now = float(model.predict(row)[0])
        for target in (now + 1.5, now - 1.5):
            other = explain.counterfactual(model, row, frame[["large", "whole"]], target=target)
            if other:
                n_found += 1
                typed, _ = typed_back(str(other), row)
                assert (float(model.predict(typed)[0]) - target) * np.sign(target - now) >= 0
                after, before = re.match(r"(\S+) instead of (\S+), if", str(other)).groups()
                assert float(after) == pytest.approx(other.after, rel=1e-3)
                assert float(before) == pytest.approx(now, rel=1e-3)
                assert len(after) < 12
    assert n_found > 8


@pytest.mark.browser
def test_a_counterfactual_typed_into_the_page_changes_the_prediction(visit, tmp_path):
    names = ["small", "large", "whole", "narrow", "day", "since"]
    model, frame = fitted(names)
    write_report(model, frame, None, tmp_path / "page.html", sizes=())
    page = visit(tmp_path / "page.html")
    n_found = 0
    for i in range(0, 160, 8):
        other = explain.counterfactual(model, frame[i : i + 1], frame)
        if not other:
            continue
        page.fill("#row-number", str(i + 1))
        page.press("#row-number", "Enter")
        assert page.locator("#answer").inner_text() == other.before
        for name, text in typed_back(str(other), frame[i : i + 1])[1]:
            page.fill(f"#value-{names.index(name)}", text)
        assert page.locator("#answer").inner_text() == other.after, str(other)
        n_found += 1
    assert n_found >= 10


@pytest.mark.parametrize("seed", range(40))
def test_numbers_with_no_more_decimals_are_on_the_side_of_a_threshold_that_is_claimed(seed):
    draw = np.random.default_rng(seed)
    center, scale = draw.normal() * 10.0 ** draw.integers(-3, 6), 10.0 ** draw.uniform(-3, 5)
    feature = Feature(0, "x", "value", scaling=Scaling(center, scale))
    for up in (False, True):
        encoded = float(np.float32(draw.normal()))
        text = threshold_text(feature, encoded, up=up)
        shown = float(text)
        step = 10.0 ** -len(text.partition(".")[2]) if "e" not in text else abs(shown) * 1e-3

        def read(value):
            return float(np.float32(feature.scaling.encode(np.array([value]))[0]))

        # "x < shown" is false for the number itself, "x > shown" too; and both are true one step beyond.
        assert read(shown) >= encoded if up else read(shown) <= encoded
        beyond = float(f"{shown - step:.12g}" if up else f"{shown + step:.12g}")
        assert read(beyond) < encoded if up else read(beyond) > encoded
        if abs(encoded * scale + center) < 1e4:
            assert len(text.strip("-0.").replace(".", "")) <= 9


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_of_whole_numbers_are_whole_and_decide_as_the_model(seed):
    draw = np.random.default_rng(seed)
    center, scale = draw.normal() * 10.0 ** draw.integers(-1, 6), 10.0 ** draw.uniform(-1, 5)
    feature = Feature(0, "x", "value", whole=True, scaling=Scaling(center, scale))
    numbers = np.round(center) + np.arange(-300.0, 301.0)
    as_read = feature.scaling.encode(numbers).astype(np.float32)
    for encoded in [float(np.float32(draw.normal() * min(1, 100 / scale))), float(as_read[draw.integers(600)])]:
        above, below = (threshold_text(feature, encoded, up=up) for up in (False, True))
        assert "." not in above + below
        np.testing.assert_array_equal(numbers > float(above), as_read > encoded)
        np.testing.assert_array_equal(numbers < float(below), as_read < encoded)


def test_ranges_of_whole_numbers():
    feature = Feature(0, "n", "value", whole=True, scaling=Scaling(0.0, 1.0))
    numbers = np.arange(-3, 12)
    for seed in range(60):
        draw = np.random.default_rng(seed)
        values = np.unique(draw.uniform(0, 9, 8).round(2))
        curve = Curve(feature, values, draw.normal(size=len(values)), 0.0)
        is_above = np.interp(numbers, values, curve.parts) > 0
        for text, expected in zip(_curve_texts(curve, 0.0), (is_above, ~is_above), strict=True):
            assert "." not in text
            rows = [{"n": int(number)} for number in numbers]
            reader = FollowedText("|--- leaf 0", ["n"], {}, set())
            assert [reader.holds(text, row) for row in rows] == expected.tolist(), text


@pytest.mark.parametrize("unit", ["date", "datetime"])
def test_dates_are_on_the_side_of_a_threshold_that_is_claimed(unit):
    draw = np.random.default_rng(0)
    feature = Feature(0, "x", "value", unit=unit, scaling=Scaling(1.6e9, 2.6e7))
    for encoded in draw.normal(size=50):
        threshold = 1.6e9 + 2.6e7 * encoded
        for up in (False, True):
            text = threshold_text(feature, encoded, up=up)
            assert len(text) == (10 if unit == "date" else 19)
            shown = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
            step = 86400 if unit == "date" else 1
            assert threshold <= shown < threshold + step if up else threshold - step < shown <= threshold


def test_rules_of_a_model_hold_for_the_values_they_name():
    """Each line of a tree of one column, at its threshold and one step beside it."""
    draw = np.random.default_rng(0)
    X = draw.normal(170, 30, (200, 1))
    model = stir(TartClassifier(depth=3, epochs=5, random_state=0, device="cpu").fit(X, X[:, 0] > 180), 0, 0.5)
    tree = explain.view(model)
    n_checked = 0
    for node in tree.nodes:
        condition = tree.members[0].conditions[node.number]
        if condition is None:
            continue
        for child, text in zip(node.children, condition.texts, strict=True):
            sign, number = re.fullmatch(r"x0 (<=|>=|<|>) (\S+)", text).groups()
            step = 10.0 ** -len(number.partition(".")[2])
            for value in (float(number) - step, float(number), float(number) + step):
                value = round(value, 9)
                claimed = {"<": value < float(number), "<=": value <= float(number)}
                claimed |= {">": not claimed["<="], ">=": not claimed["<"]}
                shares = explain.explain_rows(model, np.array([[value]])).edge_shares[0, 0]
                edge = node.edges[node.children.index(child)]
                other = node.edges[1 - node.children.index(child)]
                assert (shares[edge] > shares[other]) == claimed[sign] or shares[edge] == shares[other], (text, value)
                n_checked += 1
    assert n_checked == 7 * 2 * 3


def test_a_bound_is_never_rounded_below_what_it_bounds():
    draw = np.random.default_rng(0)
    for value in draw.uniform(size=300) * 10.0 ** draw.integers(-6, 2, 300):
        for decimals in (3, 4):
            assert value - 2e-9 <= float(at_most(value, decimals)) < value + 10.0**-decimals
    assert at_most(1 + 1e-12, 4) == "1.0000"
    text = str(Certificate(0.00943, 0.98121, 0.00941, None, 426, 16, 4, 1410, 176, (), ()))
    assert text.count("0.0095") == 2
    assert "0.9813" in text


def test_rounding_to_one_side():
    draw = np.random.default_rng(0)
    for value in draw.normal(size=200) * 10.0 ** draw.integers(-300, 300, 200):
        for up in (False, True):
            found = list(candidates(float(value), up=up))
            assert found[-1] == value
            assert all(own >= value if up else own <= value for own in found)
            assert all(float(exact_text(own)) == own for own in found)
            assert abs(rounded(float(value), 3, up=up) / value - 1) < 0.0101


def test_what_is_nearly_all_or_nothing_is_not_said_to_be_so():
    assert [percent(share, 1) for share in (0.9996, 0.0004, 1.0, 0.0)] == [">99.9%", "<0.1%", "100.0%", "0.0%"]
    assert [probability_text(p) for p in (0.996, 0.004, 1.0, 0.5)] == [">0.99", "<0.01", "1.00", "0.50"]
    X = np.linspace(0, 1, 60)[:, None]
    model = TartClassifier(depth=1, leaf_layers=0, epochs=1, random_state=0, device="cpu").fit(X, X[:, 0] > 0.5)
    with torch.no_grad():
        model.tree_.decision.mlp.weights[0][:] = 0
        model.tree_.decision.mlp.biases[0][:] = 8.0  # all but 0.03 % go left, surely
        model.tree_.leaf.values[:] = torch.tensor([[-8.0, 0.0], [8.0, 0.0]])
    texts = [
        explain.export_text(model, X),
        explain.export_dot(model, X),
        explain.export_mermaid(model, X),
        "".join(map(str, explain.describe_leaves(model, X))),
    ]
    for text in texts:
        assert re.search(r">99|#62;99", text)
        assert not re.search(r"[ (](100(\.0)?%|0(\.0)?%|1\.00|0\.00)", text.replace("100.0% of rows", "")), text
