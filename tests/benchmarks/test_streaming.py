"""The page about streaming is that of its data, and the data is what was promised."""

import json
import sys
from pathlib import Path

from tartree.table import ParquetTable

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import streaming

PLACE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


def test_the_page_is_made_from_the_data():
    results = json.loads((PLACE / "streaming.json").read_text())
    assert (PLACE / "streaming.md").read_text() == streaming.page(results)


def test_memory_stays_and_time_is_near_that_of_memory():
    small, large = json.loads((PLACE / "streaming.json").read_text())["sizes"]
    assert (small["rows"], large["rows"]) == (2_000_000, 20_000_000)
    assert large["stream"]["rows"] == large["rows"]
    assert large["stream"]["peak_gb"] < 2
    assert large["command"]["peak_gb"] < 2
    for way in ("stream", "command"):
        assert abs(large[way]["peak_gb"] / small[way]["peak_gb"] - 1) < 0.2
    for time in ("fit_s", "predict_s"):
        assert small["stream"][time] < 1.5 * small["memory"][time]


def test_files_hold_all_rows(tmp_path):
    streaming.write_files(tmp_path, 1000)
    table = ParquetTable(tmp_path)
    assert table.n_rows == 1000
    assert len(table.names) == streaming.COLUMNS + 1
