"""Tables from files, however they were written."""

import gzip
import io
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree.cli.io import csv_input
from tartree.cli.io.input_formats import open_table
from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes


def read(path, notes=None):
    with open_table(str(path), notes or Notes(quiet=True)) as source:
        return source.read_all().to_pydict()


def written(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


TABLE = {"a": ["1", "007"], "b": ["x", "ä"]}


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,x\n007,ä\n",
        "a,b\r\n1,x\r\n007,ä\r\n",
        "a,b\r1,x\r007,ä\r",
        "a,b\n1,x\n007,ä",
        "a;b\n1;x\n007;ä\n",
        "a\tb\n1\tx\n007\tä\n",
        "a|b\n1|x\n007|ä\n",
        "\n  \n a , b \n\n1,x\n\n007,ä\n\n",
        '"a","b"\n"1","x"\n"007","ä"\n',
        "\ufeffa,b\n1,x\n007,ä\n",
        "a,b\n1,x\n007,ä\n".encode("utf-16"),
        "a,b\n1,x\n007,ä\n".encode("utf-32"),
        "a,b\n1,x\n007,ä\n".encode("utf-16-be").join([b"\xfe\xff", b""]),
        "a,b\n1,x\n007,ä\n".encode("latin-1"),
        gzip.compress("a;b\n1;x\n007;ä\n".encode(), mtime=0),
    ],
)
def test_forms_of_the_same_table(tmp_path, content):
    assert read(written(tmp_path, content)) == TABLE


def test_quotes(tmp_path):
    content = 'a,"b\nb"\n"1, 2","say ""no""\nplease"\n5\'10",\n'
    assert read(written(tmp_path, content)) == {"a": ["1, 2", "5'10\""], "b b": ['say "no"\nplease', ""]}


def test_latin_letters_are_noted_once(tmp_path):
    notes = Notes(quiet=True)
    content = "name,price\n" + "Jörg,5 \u20ac\n" * 100_000
    table = read(written(tmp_path, content.encode("cp1252")), notes)
    assert set(table["name"]) == {"Jörg"}
    assert set(table["price"]) == {"5 \u20ac"}
    assert notes.texts == [
        f"{tmp_path / 'table.csv'} is not UTF-8 throughout: other bytes are read as Windows-1252 (Latin-1)"
    ]


def test_utf8_letters_across_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("tartree.cli.io.byte_stream.CHUNK", 3)
    monkeypatch.setattr(csv_input, "SAMPLE", 7)
    assert read(written(tmp_path, "a,b\n1,x\n007,ä\n")) == TABLE
    mixed = "a,b\nä,x\n".encode() + "ö,ß\n".encode("latin-1")
    assert read(written(tmp_path, mixed)) == {"a": ["ä", "ö"], "b": ["x", "ß"]}


def test_decimal_commas_do_not_hide_the_semicolon(tmp_path):
    assert read(written(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n")) == {"a": ["1,5", "3,5"], "b": ["2,5", "4,5"]}


def test_one_column(tmp_path):
    assert read(written(tmp_path, "a\n1\n2\n")) == {"a": ["1", "2"]}


def test_columns_without_a_name(tmp_path):
    notes = Notes(quiet=True)
    path = written(tmp_path, ",a,column_1,\n1,2,3,\n")
    assert read(path, notes) == {"column_1_1": ["1"], "a": ["2"], "column_1": ["3"], "column_4": [""]}
    assert notes.texts == [f"{path} has columns without a name: called column_1_1, column_4"]


def test_missing_header_is_noted(tmp_path):
    notes = Notes(quiet=True)
    read(written(tmp_path, "5.1,3.5\n4.9,3.0\n"), notes)
    assert "are numbers (5.1, 3.5): is its header missing?" in notes.texts[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{} is empty"),
        (" \n\n", "{} is empty"),
        ("\ufeff", "{} is empty"),
        (gzip.compress(b"", mtime=0), "{} is empty"),
        (
            "a,b,a,c,b\n1,2,3,4,5\n",
            "{} has columns of the same name: 'a' (2 times), 'b' (2 times); rename or remove them",
        ),
        ("a, a\n1,2\n", "{} has columns of the same name: 'a' (2 times); rename or remove them"),
        ("a,b\n1,2\n\n3,4,5\n", "{}: row 3 must have 2 values, as many as the header (row 1), got 3: 3,4,5"),
        ("a,b\n1,2\n3\n", "{}: row 3 must have 2 values, as many as the header (row 1), got 1: 3"),
        ('a,b\n1,"2\n3,4\n', "{} ends within quotes: one is opened and never closed"),
        (b"PK\x03\x04rest", "{} is an Excel workbook or an archive, not a text table; save it as CSV"),
        (b"a\x00b", "{} is not a text table: it holds NUL characters; save it as CSV in UTF-8"),
        (gzip.compress(b"a,b\n" * 1000, mtime=0)[:-12], "{} cannot be unpacked: Compressed file ended before the"),
    ],
)
def test_what_is_no_table(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(Problem) as caught:
        read(path)
    assert caught.value.message.startswith(message.format(path))


def test_a_row_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_input, "BLOCK", 2**20)
    path = written(tmp_path, 'a,b\n1,"2\n' + "3,4\n" * 600_000)
    with pytest.raises(Problem, match="has a row of more than 1 MB: is a quote opened and never closed"):
        read(path)


def test_a_header_that_never_ends(tmp_path):
    with pytest.raises(Problem, match="has no header in its first 2 MB"):
        read(written(tmp_path, "abc " * 600_000))

    with pytest.raises(Problem, match="has no header in its first 2 MB"):
        read(written(tmp_path, "," * 100))


def test_header_without_rows(tmp_path):
    for content in ("a,b", "a,b\n", "a,b\n\n\n"):
        assert read(written(tmp_path, content)) == {"a": [], "b": []}


def test_parquet_keeps_its_types(tmp_path):
    table = pa.table({"a": [1, None], "b": pa.array(["x", "y"]).dictionary_encode(), "c": [[1], [2]]})
    path = tmp_path / "table.data"  # known by its content
    pq.write_table(table, path)
    with open_table(str(path), Notes()) as source:
        assert not source.is_text
        assert source.read_all().equals(table)


def test_wrong_parquet(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\n1,2\n", "table.parquet")
    with pytest.raises(Problem, match=r"is not a Parquet file, though its name ends in \.parquet"):
        read(path)
    cut = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"x": [1.0]}), cut)
    cut.write_bytes(cut.read_bytes()[:-6])
    with pytest.raises(Problem, match=r"cut\.parquet must be a Parquet file, got .*; write it again"):
        read(cut)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PAR1...")))
    with pytest.raises(Problem, match="standard input holds Parquet"):
        read("-")


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 100])
def test_chunks(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(csv_input, "BLOCK", 64)
    path = written(tmp_path, "a\n" + "".join(f"{number}\n" for number in range(40)))
    with open_table(str(path), Notes()) as source:
        _, before, chunks = zip(*source.chunks(rows), strict=True)
    assert before == tuple(range(0, 40, rows))
    sizes = [chunk.num_rows for chunk in chunks]
    assert all(size == rows for size in sizes[:-1])
    assert 0 < sizes[-1] <= rows
    assert [int(value) for chunk in chunks for value in chunk["a"].to_pylist()] == list(range(40))
