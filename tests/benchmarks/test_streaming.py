"""The page about streaming is made from its data."""

import json
from pathlib import Path

import streaming

from tartree.table import ParquetTable

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


def test_the_page_is_made_from_the_data():
    results = json.loads((FOLDER / "streaming.json").read_text())
    assert (FOLDER / "streaming.md").read_text() == streaming.page(results)


def test_files_hold_all_rows(tmp_path):
    streaming.write_files(tmp_path, 1000)
    table = ParquetTable(tmp_path)
    assert table.n_rows == 1000
    assert len(table.names) == streaming.COLUMNS + 1
