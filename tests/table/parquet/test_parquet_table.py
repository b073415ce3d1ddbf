"""Tables in Parquet files: what is found, what is checked, and rows block by block."""

import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tartree.table import ParquetTable
from tartree.table.parquet import is_parquet


def write(path, first=0, rows=10, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"a": np.arange(first, first + rows, dtype=np.float64), "b": [f"t{i % 3}" for i in range(rows)], **more}
    pq.write_table(pa.table(columns), path, row_group_size=4)
    return path


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        write(tmp_path / f"rows-{number}.parquet", number * 10)
    (tmp_path / "notes.txt").write_text("not a table")
    write(tmp_path / "_hidden.parquet", 1000)
    return tmp_path


def values(table, column="a"):
    return [value for block in table.blocks for piece in table.read(block) for value in piece[column].to_pylist()]


def test_all_ways_to_say_where_the_files_are(folder):
    files = [folder / f"rows-{number}.parquet" for number in range(3)]
    ways = [
        folder,
        str(folder),
        f"{folder}/rows-*.parquet",
        files,
        [str(file) for file in files],
        [files[0], f"{folder}/rows-[12].parquet"],
        pyarrow.dataset.dataset([str(file) for file in files]),
    ]
    for way in ways:
        assert is_parquet(way)
        table = ParquetTable(way)
        assert (table.names, table.n_rows) == (["a", "b"], 30)
        assert values(table) == list(range(30))
    assert values(ParquetTable(files[0])) == list(range(10))
    assert not is_parquet([[1, 2]])
    assert not is_parquet(pa.table({"a": [1]}))


def test_folders_may_name_columns(tmp_path, monkeypatch):
    rows = tmp_path / "run=3" / "rows"  # the folder above is none of the table's business
    files = [write(rows / f"year={year}" / "area=n%2Fa" / "x.parquet", year) for year in (2023, 2024)]
    hive = pyarrow.dataset.dataset(rows, partitioning="hive")
    for source in (rows, f"{rows}/*", f"{rows}/*/*/*.parquet", f"{rows}/**/*.parquet", files, hive):
        table = ParquetTable(source)
        assert table.names == ["a", "b", "year", "area"]
        assert values(table, "year") == [2023] * 10 + [2024] * 10
        assert table.read_all()["area"].to_pylist() == ["n/a"] * 20
    monkeypatch.chdir(rows)
    for source in ("year=2024", "year=2024/*/*.parquet", "year=2024/area=n%2Fa/x.parquet"):
        assert values(ParquetTable(source), "year") == [2024] * 10


def test_values_of_folders_are_of_one_type(tmp_path):
    for name in ("zone=1", "zone=b", "zone=__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / name / "x.parquet", rows=1)
    assert ParquetTable(tmp_path).read_all()["zone"].to_pylist() == ["1", None, "b"]
    write(tmp_path / "zone=c" / "x.parquet", rows=1, zone=["of its own"])
    assert ParquetTable(tmp_path).read_all()["zone"].to_pylist() == ["1", None, "b", "of its own"]
    write(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet must have the column 'zone', which .*zone=1.*has"):
        ParquetTable(tmp_path)


def test_the_schema_of_a_dataset_counts(folder):
    files = [f"{folder}/rows-{number}.parquet" for number in range(3)]
    own = pa.schema([("b", pa.string()), ("a", pa.float32())])
    table = ParquetTable(pyarrow.dataset.dataset(files, schema=own))
    assert (table.names, table.schema.field("a").type) == (["b", "a"], pa.float64())
    assert ParquetTable(pyarrow.dataset.dataset(files, schema=pa.schema([("b", pa.string())]))).names == ["b"]
    with pytest.raises(
        ValueError,
        match=r"rows-0\.parquet: column 'a' must be of the same type as in the dataset's schema, string",
    ):
        ParquetTable(pyarrow.dataset.dataset(files, schema=pa.schema([("a", pa.string())])))
    with pytest.raises(ValueError, match=r"rows-0\.parquet must have the column 'c', which the dataset's schema has"):
        ParquetTable(pyarrow.dataset.dataset(files, schema=pa.schema([("c", pa.string())])))


def test_endings_in_capital_letters(tmp_path):
    write(tmp_path / "ROWS.PARQUET")
    assert ParquetTable(tmp_path).n_rows == 10


def test_columns_that_all_files_have(folder):
    write(folder / "rows-1.parquet", c=[1] * 10, d=[2] * 10)
    write(folder / "rows-2.parquet", c=["text"] * 10)
    table = ParquetTable(folder, columns=["a"])
    assert table.all_names == ["a", "b", "c", "d"]
    assert table.common_names() == ["a", "b"]


def test_the_end_of_a_file_is_read_once(tmp_path, monkeypatch):
    path = write(tmp_path / "rows.parquet", rows=400)  # in 100 row groups
    read = []
    opened = pq.ParquetFile.__init__

    def listen(self, *arguments, metadata=None, **options):
        read.append(metadata is None)
        opened(self, *arguments, metadata=metadata, **options)

    monkeypatch.setattr(pq.ParquetFile, "__init__", listen)
    table = ParquetTable(path)
    assert values(table.select(["a"])) == list(range(400))
    assert (len(read), sum(read)) == (101, 1)
    pickle.loads(pickle.dumps(table))
    write(path, first=1000, rows=400)
    assert values(table) == list(range(1000, 1400))
    assert sum(read) == 2


def test_ends_of_files_do_not_pile_up(folder, monkeypatch):
    from tartree.table.parquet import footers

    monkeypatch.setattr(footers, "MOST_BYTES", 1)
    table = ParquetTable(folder)
    assert values(table) == list(range(30))
    assert len(table._footers._footers) == 1


def test_blocks_are_row_groups_and_few_of_them_are_split(folder):
    table = ParquetTable(folder)
    assert [block.rows for block in table.blocks] == [4, 4, 2] * 3
    assert [block.first for block in table.blocks] == [0, 4, 8, 10, 14, 18, 20, 24, 28]
    one = ParquetTable(folder / "rows-1.parquet")
    assert len(one.blocks) >= 8
    assert sum(block.rows for block in one.blocks) == 10
    assert values(one) == list(range(10, 20))
    assert [piece.num_rows for _, _, piece in one.scan()] == [4, 4, 2]  # though row groups are split into blocks
    small = [piece for block in table.blocks for piece in table.read(block, piece_rows=3)]
    assert max(piece.num_rows for piece in small) == 3
    again = pickle.loads(pickle.dumps(table))
    assert values(again) == values(table)


def test_types_of_one_family_are_taken_and_widened(tmp_path):
    pq.write_table(
        pa.table({"n": pa.array([1, 2], pa.int32()), "t": ["x", "y"], "g": [None, None]}), tmp_path / "1.parquet"
    )
    texts = pa.array(["y", None]).dictionary_encode()
    pq.write_table(pa.table({"g": [True, None], "t": texts, "n": [0.5, None]}), tmp_path / "2.parquet")
    table = ParquetTable(tmp_path)
    assert table.read_all().to_pydict() == {
        "n": [1, 2, 0.5, None],
        "t": ["x", "y", "y", None],
        "g": [None, None, True, None],
    }


def test_a_missing_column_names_file_and_column(folder):
    pq.write_table(pa.table({"a": [1.0]}), folder / "rows-1.parquet")
    with pytest.raises(ValueError, match=r"rows-1\.parquet must have the column 'b', which .*rows-0\.parquet has"):
        ParquetTable(folder)
    assert ParquetTable(folder, columns=["a"]).names == ["a"]
    write(folder / "rows-1.parquet", c=[1] * 10)
    with pytest.raises(ValueError, match=r"rows-0\.parquet must have the column 'c'"):
        ParquetTable(folder)


@pytest.mark.parametrize("other", [pa.array(["1"]), pa.array([True]), pa.array([1], pa.timestamp("us"))])
def test_a_changed_type_names_file_and_column(folder, other):
    pq.write_table(pa.table({"a": other, "b": ["t"]}), folder / "rows-2.parquet")
    with pytest.raises(
        ValueError, match=rf"rows-2\.parquet: column 'a' must be of the same type .* {re.escape(str(other.type))}"
    ):
        ParquetTable(folder)
    assert ParquetTable(folder, drop=["a"]).names == ["b"]


def test_other_wrong_files(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet"):
        ParquetTable(folder / "nowhere.parquet")
    with pytest.raises(FileNotFoundError, match="got none"):
        ParquetTable(f"{folder}/nowhere-*.parquet")
    with pytest.raises(ValueError, match="no column 'z' to drop"):
        ParquetTable(folder, drop=["z"])
    with pytest.raises(ValueError, match="must not be filtered"):
        ParquetTable(pyarrow.dataset.dataset(f"{folder}/rows-0.parquet").filter(pyarrow.dataset.field("a") > 1))
    with pytest.raises(ValueError, match="one of Parquet files"):
        ParquetTable(pyarrow.dataset.dataset(pa.table({"a": [1]})))
    pq.write_table(pa.table({"a": [[1, 2]]}), tmp_path / "nested.parquet")
    with pytest.raises(ValueError, match=r"nested\.parquet: column 'a' must hold one value in every row"):
        ParquetTable(tmp_path / "nested.parquet").check_plain(["a"])
    (folder / "rows-1.parquet").write_bytes(b"PAR1 this is not a table PAR1")
    with pytest.raises(ValueError, match=r"rows-1\.parquet must be a Parquet file"):
        ParquetTable(folder)
    (folder / "rows-1.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"rows-1\.parquet must be a Parquet file"):
        ParquetTable(folder)


def test_a_damaged_column_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    rng = np.random.default_rng(0)
    rows = pa.table({name: rng.normal(size=5000) for name in "abc"})
    pq.write_table(rows, path, compression="zstd", use_dictionary=False)
    place = pq.read_metadata(path).row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = place.data_page_offset + place.total_compressed_size // 2
    content[start : start + 2000] = bytes(2000)
    damaged = Path(tmp_path / "damaged.parquet")
    damaged.write_bytes(content)
    table = ParquetTable(damaged)
    with pytest.raises(ValueError, match=r"damaged\.parquet: column 'b' of row group 0 must be readable"):
        values(table)


def test_a_file_that_shrinks_is_noticed(folder):
    table = ParquetTable(folder)
    pq.write_table(pa.table({"a": [1.0], "b": ["t"]}), folder / "rows-0.parquet")
    with pytest.raises(ValueError, match=r"rows-0\.parquet must stay as it is"):
        values(table)
    pq.write_table(pa.table({"b": ["t"] * 10}), folder / "rows-0.parquet", row_group_size=4)
    with pytest.raises(ValueError, match=r"rows-0\.parquet must stay as it is .* column 'a' is gone"):
        values(table)


def test_files_come_in_the_order_of_arrow(tmp_path, monkeypatch):
    places = ["a/x.parquet", "a-b/x.parquet", "a.parquet", "B.parquet", "é.parquet"]
    for number, place in enumerate(places):
        write(tmp_path / place, number, rows=1)
    order = [str(tmp_path / place) for place in ("B.parquet", "a-b/x.parquet", "a.parquet", "a/x.parquet", "é.parquet")]
    assert pyarrow.dataset.dataset(tmp_path).files == order
    backwards = pyarrow.dataset.dataset(order[::-1])
    twice = pyarrow.dataset.dataset([order[1], order[0], order[1]])
    for source, files in (
        (tmp_path, order),
        (f"{tmp_path}/**/*.parquet", order),
        (f"{tmp_path}/**", order),  # which finds the files, and the folders that hold them
        (pyarrow.dataset.dataset(tmp_path), order),
        (backwards, order[::-1]),
        (twice, twice.files),
        (order[::-1], order[::-1]),
        ([order[1], order[0], order[1]], [order[1], order[0], order[1]]),
        ([order[2], tmp_path / "a"], [order[2], order[3]]),
    ):
        table = ParquetTable(source)
        assert table.files == files
        assert values(table) == [values(ParquetTable(file))[0] for file in files]
        assert table.n_rows == len(files)
    monkeypatch.chdir(tmp_path)
    assert ParquetTable("./**").files == ["B.parquet", "a-b/x.parquet", "a.parquet", "a/x.parquet", "é.parquet"]


def test_the_index_of_pandas_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    frame.to_parquet(tmp_path / "range.parquet")  # a range, which is no column
    frame.to_parquet(tmp_path / "none.parquet", index=False)
    assert ParquetTable(tmp_path).index_names == []
    frame.index = [3, 9]
    frame.set_index(pd.Index([5, 6], name="id"), append=True).to_parquet(tmp_path / "two.parquet")
    one = ParquetTable(tmp_path / "two.parquet")
    assert (one.names, one.index_names) == (["a", "b"], ["__index_level_0__", "id"])
    assert one.all_names == ["a", "b", "__index_level_0__", "id"]
    assert one.with_index(["id", None, 3]).names == ["a", "b", "id"]
    assert ParquetTable(tmp_path / "two.parquet", columns=["id"]).read_all().to_pydict() == {"id": [5, 6]}
    assert ParquetTable(tmp_path / "two.parquet", columns=["a"]).with_index(["id"]).names == ["a"]
    assert ParquetTable(tmp_path / "two.parquet", drop=["id"]).with_index(["id"]).names == ["a", "b"]
    assert ParquetTable(pyarrow.dataset.dataset(tmp_path / "two.parquet")).names == ["a", "b"]
    assert ParquetTable(tmp_path).names == ["a", "b"]  # which all files have
    frame.assign(id=7).to_parquet(tmp_path / "column.parquet")
    assert ParquetTable(tmp_path).names == ["a", "b"]  # an index in one file, and hence in none a column


@pytest.mark.parametrize("said", [b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": [null, "gone"]}'])
def test_what_is_not_as_pandas_writes_it_is_no_index(tmp_path, said):
    pq.write_table(pa.table({"a": [1.0]}).replace_schema_metadata({"pandas": said}), tmp_path / "x.parquet")
    table = ParquetTable(tmp_path)
    assert (table.names, table.index_names) == (["a"], [])


def test_rows_are_counted_in_their_files(folder):
    write(folder / "rows-0a.parquet", rows=0)
    table = ParquetTable([folder / "rows-0a.parquet", folder])
    files = ["rows-0a", "rows-0", "rows-0a", "rows-1", "rows-2"]
    assert [Path(file).stem for file in table.files] == files
    assert [Path(table.place(row)[0]).stem for row in (0, 9, 10, 29)] == ["rows-0", "rows-0", "rows-1", "rows-2"]
    assert [table.place(row)[1] for row in (0, 9, 10, 29)] == [0, 9, 0, 9]
    assert [table.rows_of(block) for block in table.blocks[3:6]] == [range(4), range(4, 8), range(8, 10)]
    scanned = [(file, n_before, piece["a"][0].as_py()) for file, n_before, piece in table.scan(piece_rows=3)]
    assert scanned[:4] == [(1, 0, 0.0), (1, 3, 3.0), (1, 4, 4.0), (1, 7, 7.0)]
    assert scanned[5] == (3, 0, 10.0)
    assert table.file_rows == [range(0), range(10), range(10, 10), range(10, 20), range(20, 30)]
