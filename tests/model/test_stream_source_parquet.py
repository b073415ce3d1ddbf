"""What estimators make of Parquet files as people have them: in any order, with an index, with a wrong value."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, TartRegressor
from tartree.table import ParquetTable

from ..tolerances import assert_same

WAYS = pytest.mark.parametrize("in_memory", [False, True])


@pytest.fixture(scope="module")
def line():
    """A model that gives back what it is given, roughly."""
    x = np.linspace(0, 4, 500)
    return TartRegressor(depth=2, epochs=20, random_state=0).fit(pd.DataFrame({"x": x}), x)


def test_predictions_come_in_the_order_of_the_rows(line, tmp_path):
    for name, value in (("a/x.parquet", 1.0), ("a-b/x.parquet", 2.0), ("c.parquet", 3.0)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": [value, value]}), tmp_path / name)
    last, first = str(tmp_path / "c.parquet"), str(tmp_path / "a/x.parquet")
    backwards = pyarrow.dataset.dataset([last, first])
    twice = pyarrow.dataset.dataset([last, last])
    whole = pyarrow.dataset.dataset(tmp_path)
    for source, rows in (
        (backwards, backwards.to_table()["x"].to_pylist()),
        (twice, twice.to_table()["x"].to_pylist()),
        (whole, whole.to_table()["x"].to_pylist()),
        (tmp_path, pd.read_parquet(tmp_path)["x"].tolist()),
        (f"{tmp_path}/**/*.parquet", pd.read_parquet(tmp_path)["x"].tolist()),
        ([last, first], [3, 3, 1, 1]),
        ([last, last], [3, 3, 3, 3]),
    ):
        assert_same(line.predict(source), line.predict(pd.DataFrame({"x": rows})))


@pytest.fixture
def sorted_frame():
    """Rows in the order of their classes, of which nothing but the row's number tells."""
    rows = 400
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=rows)})
    frame["y"] = np.where(np.arange(rows) < rows / 2, "no", "yes")
    return frame.sample(frac=1, random_state=0)


@WAYS
@pytest.mark.parametrize("name", [None, "number"])
def test_the_index_of_pandas_is_not_learnt_from(sorted_frame, tmp_path, in_memory, name):
    sorted_frame.rename_axis(name).to_parquet(tmp_path / "0.parquet", row_group_size=100)
    sorted_frame.to_parquet(tmp_path / "1.parquet", index=False)
    model = TartClassifier(depth=2, epochs=10, random_state=0).fit(ParquetTable(tmp_path, in_memory=in_memory), "y")
    assert model.feature_names_in_.tolist() == ["a"]
    assert model.score(tmp_path, "y") < 0.7
    sorted_frame[["a"]].to_parquet(tmp_path / "new.pq", index=False)
    assert len(model.predict(tmp_path / "new.pq")) == len(sorted_frame)
    both = ParquetTable(tmp_path / "0.parquet", columns=[name or "__index_level_0__", "a", "y"], in_memory=in_memory)
    model = TartClassifier(depth=2, epochs=10, random_state=0).fit(both, "y")
    assert model.feature_names_in_.tolist() == [name or "__index_level_0__", "a"]
    assert model.score(tmp_path / "0.parquet", "y") > 0.9


@WAYS
def test_an_index_that_is_named_is_the_target_or_the_weight(sorted_frame, tmp_path, in_memory):
    path = tmp_path / "rows.parquet"
    sorted_frame.assign(b=1.0, w=2.0).set_index(["y", "w"]).to_parquet(path)
    table = ParquetTable(path, in_memory=in_memory)
    assert table.names == ["a", "b"]
    model = TartClassifier(depth=1, epochs=1, random_state=0).fit(table, "y", "w")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="must have the column 'y'"):
        TartClassifier().fit(ParquetTable(path, columns=["a", "b"], in_memory=in_memory), "y")


def wrong_in(place, column, row, value):
    """Two files of 3,000 rows, in row groups of 1,000; the second has a wrong value."""
    rng = np.random.default_rng(0)
    for number in range(2):
        a = rng.normal(size=3000)
        columns = {"a": a, "b": rng.normal(size=3000), "y": np.where(a > 0, "yes", "no").astype(object)}
        frame = pd.DataFrame(columns | {"z": a, "w": np.arange(3000) % 2.0})
        if number:
            frame.loc[row, column] = value
        frame.to_parquet(place / f"{number}.parquet", row_group_size=1000, index=False)
    return place


@WAYS
@pytest.mark.parametrize(
    ("make", "target", "column", "value", "message"),
    [
        (TartClassifier, "y", "b", np.inf, r"column 'b' must hold finite numbers .* row 2501 "),
        (TartClassifier, "y", "y", None, r"target 'y' must have a value in every row, but row 2501 "),
        (TartRegressor, "z", "z", np.nan, r"target 'z' must have a value in every row, but row 2501 "),
        (TartRegressor, "z", "z", np.inf, r"target 'z' must be finite, but row 2501 "),
        (TartRegressor, "z", "w", -1.0, r"sample_weight 'w' must hold numbers of at least 0.*, but row 2501 holds -1"),
    ],
)
def test_a_wrong_value_is_named_with_its_file_and_its_row(tmp_path, in_memory, make, target, column, value, message):
    table = ParquetTable(wrong_in(tmp_path, column, 2501, value), in_memory=in_memory)
    names = ["a", "b", target, "w"]
    with pytest.raises(ValueError, match=rf"1\.parquet: {message}"):
        make(depth=1, epochs=1).fit(table.select(names), target, "w")  # where every other row has no weight


def test_rows_that_are_left_out_count(tmp_path):
    from tartree.model.stream_source import StreamSource

    wrong_in(tmp_path, "b", 2501, np.inf)
    frame = pd.read_parquet(tmp_path / "1.parquet")
    frame.loc[2000:2400, "y"] = None
    frame.to_parquet(tmp_path / "1.parquet", row_group_size=1000, index=False)
    table = ParquetTable(tmp_path, columns=["a", "b", "y"], in_memory=False)
    with pytest.raises(ValueError, match=r"1\.parquet: column 'b' .* row 2501 "):
        TartClassifier(depth=1, epochs=1).fit_source(StreamSource(table, ["y"], drop_missing_target=True))


def test_a_wrong_value_to_predict_or_to_go_on_with(tmp_path):
    wrong_in(tmp_path, "b", 2501, np.inf)
    first = ParquetTable(tmp_path / "0.parquet", columns=["a", "b", "y"], in_memory=False)
    model = TartClassifier(depth=1, epochs=1, warm_start=True, random_state=0).fit(first, "y")
    for call in (model.predict, model.predict_proba, model.apply):
        with pytest.raises(ValueError, match=r"1\.parquet: column 'b' .* row 2501 "):
            call(tmp_path)
    both = ParquetTable(tmp_path, columns=["a", "b", "y"], in_memory=False)
    with pytest.raises(ValueError, match=r"1\.parquet: column 'b' .* row 2501 "):
        model.fit(both, "y")
