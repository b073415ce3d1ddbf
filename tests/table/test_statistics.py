"""Statistics that are gathered in pieces: the same for any number of pieces, in any order."""

import datetime
import pickle

import numpy as np
import pyarrow as pa
import pytest

from tartree.table import TableEncoder, TableStatistics, sketch
from tartree.table.columns import category
from tartree.table.moments import Moments
from tartree.table.sketch import SIZE, QuantileSketch

from ..optional import given, settings, st

TYPES = {
    "number": pa.float64(),
    "whole": pa.int64(),
    "text": pa.string(),
    "truth": pa.bool_(),
    "date": pa.date32(),
    "moment": pa.timestamp("us"),
    "nothing": pa.null(),
}
VALUES = {
    "number": st.floats(-1e6, 1e6),
    "whole": st.integers(-5, 5),
    "text": st.sampled_from(["red", "green", "blue", ""]),
    "truth": st.booleans(),
    "date": st.dates(datetime.date(1990, 1, 1)),
    "moment": st.datetimes(datetime.datetime(1990, 1, 1)),
    "nothing": st.none(),
}


@st.composite
def tables_in_pieces(draw):
    """A table, where it is cut, the order of the pieces, and weights or none."""
    n_rows = draw(st.integers(1, 30))
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    columns = {
        name: draw(st.lists(st.one_of(st.none(), VALUES[name], VALUES[name]), min_size=n_rows, max_size=n_rows))
        for name in names
    }
    table = pa.table({name: pa.array(values, TYPES[name]) for name, values in columns.items()})
    inner = draw(st.lists(st.integers(0, n_rows), max_size=n_rows))
    cuts = draw(st.sampled_from([[0, *sorted(inner), n_rows], list(range(n_rows + 1))]))  # also one row a piece
    order = draw(st.permutations(range(len(cuts) - 1)))
    weights = draw(st.none() | st.lists(st.floats(0.1, 9), min_size=n_rows, max_size=n_rows))
    return table, cuts, order, weights


def close(first, second):
    assert type(first) is type(second)
    for name, value in vars(first).items():
        other = getattr(second, name)
        if name == "scaling":
            close(value, other)
        elif isinstance(value, float | tuple) and name not in ("levels",):
            np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-9)
        else:
            assert other == value, name


@settings(deadline=None, max_examples=40)
@given(tables_in_pieces(), st.sampled_from(["standard", "quantile", "plain"]))
def test_the_encoder_is_that_of_all_rows_whatever_the_pieces(case, numeric):
    table, cuts, order, weights = case
    if numeric == "plain":  # its median in memory is one of rows, not of weights
        weights = None
    whole = TableEncoder(numeric=numeric).fit(table, sample_weight=weights)
    merged = TableStatistics()
    for place in order:
        start, end = cuts[place], cuts[place + 1]
        own = None if weights is None else weights[start:end]
        merged.merge(pickle.loads(pickle.dumps(TableStatistics.of(table.slice(start, end - start), own))))
    pieced = TableEncoder(numeric=numeric).fit_statistics(merged)
    assert merged.n_rows == table.num_rows
    assert pieced.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    for first, second in zip(whole.columns_, pieced.columns_, strict=True):
        close(first, second)
    np.testing.assert_allclose(pieced.transform(table), whole.transform(table), rtol=1e-5, atol=1e-5)


def test_a_median_by_weight_does_not_depend_on_rounding():
    """Half of the weight, 0.7 of 1.4, is reached at the first value, though the sum of all comes out a bit larger."""
    column, weights = np.array([[5.0], [2.0], [5.0], [1.0], [1.0], [np.nan]]), [0.1, 0.5, 0.1, 0.2, 0.5, 0.1]
    whole = TableEncoder().fit(column, sample_weight=weights).columns_[0]
    pieced = TableEncoder().fit_statistics(TableStatistics.of(column, weights)).columns_[0]
    assert whole.fill == pieced.fill == 1.0


def test_rows_without_weight_are_not_looked_at():
    table = pa.table({"a": [1.0, 5.0, 1e9], "b": ["x", "y", "z"]})
    found = TableStatistics.of(table, [1.0, 3.0, 0.0])
    assert found.n_rows == 2
    assert found.columns[0].tally.high == 5.0
    assert found.columns[0].tally.moments.center == 4.0
    assert found.columns[1].tally.counts == {"x": 1, "y": 1}
    nothing = TableStatistics.of(table, np.zeros(3))
    assert nothing.n_rows == 0
    with pytest.raises(ValueError, match="at least one row with weight"):
        TableEncoder().fit_statistics(nothing)


def test_pieces_must_fit_together():
    first = TableStatistics.of(pa.table({"a": [1.0]}))
    with pytest.raises(ValueError, match=r"same columns .* \['a'\] and \['b'\]"):
        first.update(pa.table({"b": [1.0]}))
    with pytest.raises(ValueError, match=r"column 'a' must hold values of one kind .*category and number"):
        first.update(pa.table({"a": ["1"]}))
    with pytest.raises(ValueError, match=r"column 'a' must hold values of one kind .*boolean and number"):
        first.merge(TableStatistics.of(pa.table({"a": [True]})))
    with pytest.raises(ValueError, match="column 'a' must hold values of one kind"):
        TableStatistics.of(pa.table({"a": ["1"]})).update(pa.table({"a": [1.0]}))
    first.merge(TableStatistics.of(pa.table({"a": [None, None]})))
    assert first.columns[0].gaps == 2


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 1e9, -1e15]), st.integers(1, 60))
def test_means_and_variances_are_exact_to_rounding(seed, offset, n_pieces):
    rng = np.random.default_rng(seed)
    values = offset + rng.normal(size=4000)
    weights = rng.exponential(size=4000)
    cuts = np.sort(rng.integers(0, 4000, n_pieces))
    pieces = list(zip(np.split(values, cuts), np.split(weights, cuts), strict=True))
    merged = Moments()
    for place in rng.permutation(len(pieces)):
        merged.merge(Moments.of(*pieces[place]))
    shift = values - offset  # exact, for the offset is in every value
    mean = np.average(shift, weights=weights)
    assert merged.center == pytest.approx(offset + mean, rel=1e-15, abs=1e-13)
    assert merged.spread**2 == pytest.approx(np.average((shift - mean) ** 2, weights=weights), rel=1e-6)
    if not offset:
        assert merged.spread**2 == pytest.approx(np.average((shift - mean) ** 2, weights=weights), rel=1e-13)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1.7e308])
def test_very_large_and_very_small_numbers(size):
    table = np.array([[-size], [0.5 * size], [size]])
    merged = TableStatistics.of(table[:1]).merge(TableStatistics.of(table[1:]))
    pieced, whole = TableEncoder().fit_statistics(merged).columns_[0], TableEncoder().fit(table).columns_[0]
    assert pieced.scaling.center == pytest.approx(whole.scaling.center, rel=1e-9, abs=size * 1e-9)
    assert pieced.scaling.scale == pytest.approx(whole.scaling.scale, rel=1e-9)


def rank_error(found_by, values, weights):
    """The largest distance between a share and the ranks of the value that the sketch gives for it."""
    order = np.argsort(values, kind="stable")
    ranked, cumulative = values[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    worst = 0.0
    for share in np.linspace(0.005, 0.995, 100):
        found = found_by.quantile(share)
        low = cumulative[np.searchsorted(ranked, found, "left")] / cumulative[-1]
        high = cumulative[np.searchsorted(ranked, found, "right")] / cumulative[-1]
        worst = max(worst, low - share, share - high)
    return worst


KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "sorted": lambda rng, n: np.arange(float(n)),
    "falling": lambda rng, n: np.arange(float(n), 0, -1),
    "few": lambda rng, n: rng.integers(0, 50, n).astype(float),
    "skew": lambda rng, n: rng.zipf(1.3, n).astype(float),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_quantiles_are_within_half_a_percent(kind, weighted):
    rng = np.random.default_rng(3)
    n = 100_000
    values = KINDS[kind](rng, n)
    weights = rng.exponential(size=n) ** 3 + 1e-6 if weighted else np.ones(n)
    cuts = np.sort(rng.integers(0, n, 40))
    sketches = []
    for own, weight in zip(np.split(values, cuts), np.split(weights, cuts), strict=True):
        sketches.append(QuantileSketch())
        sketches[-1].update(own, weight if weighted else None)
    merged = QuantileSketch()
    for place in rng.permutation(len(sketches)):
        merged.merge(sketches[place])
    assert rank_error(merged, values, weights) < 0.005
    assert merged.items()[1].sum() == pytest.approx(weights.sum(), rel=0.005)
    assert len(merged.items()[0]) < 70 * SIZE


def test_the_error_of_one_row_a_piece_is_within_its_bound(monkeypatch):
    monkeypatch.setattr(sketch, "SIZE", 256)
    values = np.random.default_rng(0).normal(size=4096)
    merged = QuantileSketch()
    for value in values:
        single = QuantileSketch()
        single.update(np.array([value]))
        merged.merge(single)
    steps = np.log(4096 / 256) / np.log(4)
    assert 1 / 4096 < rank_error(merged, values, np.ones(4096)) <= 2 / 256 * steps
    assert len(merged.items()[0]) < 4 * 256
    merged.merge(QuantileSketch())
    assert merged.items()[1].sum() == 4096


@pytest.mark.parametrize("n_pieces", [1, 32, 160])
def test_errors_of_a_sketch_take_turns(monkeypatch, n_pieces):
    """Always the second of four would give each rank half a value too much, at each of four levels: 2 / 64 of all."""
    monkeypatch.setattr(sketch, "SIZE", 64)
    n = 64 * 160  # levels are full 160, 40, 10 and 2 times
    ranks = np.random.default_rng(0).permutation(n).astype(float)
    found_by = QuantileSketch()
    for piece in np.split(ranks, n_pieces):
        found_by.update(piece)
    values, weights = found_by.items()
    places = np.linspace(0, n, 1000)
    counted = np.concatenate([[0.0], np.cumsum(weights)])[np.searchsorted(values, places, "right")]
    assert abs(np.mean(counted - places)) / n < 0.25 / 64


def test_few_different_values_are_exact():
    values = np.random.default_rng(0).integers(0, SIZE, 100_000).astype(float)
    found_by = QuantileSketch()
    for piece in np.split(values, 10):
        found_by.update(piece)
    found, counts = np.unique(values, return_counts=True)
    assert np.array_equal(found_by.items()[0], found)
    assert np.array_equal(found_by.items()[1], counts)


def test_levels_are_counted_exactly_and_identifiers_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(category, "MOST_LEVELS", 100)
    pieces = [pa.table({"id": [f"{k}-{i}" for i in range(80)] + ["often"] * 20}) for k in range(10)]
    merged = TableStatistics()
    for piece in pieces:
        merged.update(piece)
    found = merged.columns[0].tally
    assert len(found.counts) <= 100
    assert 200 - found.forgotten <= found.counts["often"] <= 200
    assert found.forgotten <= 1000 / 100
    column = TableEncoder().fit_statistics(merged).columns_[0]
    assert column.levels[:1] == ("often",)
    assert column.other


def test_numbers_and_texts_as_levels_become_texts():
    numbers = pa.table({"a": pa.array([1, 2, 2]).dictionary_encode()})
    texts = pa.table({"a": pa.array(["x", "2"]).dictionary_encode()})
    merged = TableStatistics.of(numbers).merge(TableStatistics.of(texts))
    assert merged.columns[0].tally.counts == {"1": 1, "2": 3, "x": 1}
