"""Durations and times of day as text."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tartree.cli.io.durations import parse_duration, to_durations, to_times


@pytest.mark.parametrize(
    "text",
    [
        "13 days 13:00:00",
        "-1 days +23:00:00",
        "0 days 00:00:00.000001",
        "3 days",
        "1 day, 2:03:04.5",
        "12:30:00",
        "-0:00:01.25",
        "P2DT12H30M",
        "PT90M",
        "P-1DT23H59M55S",
    ],
)
def test_as_pandas_reads_them(text):
    assert parse_duration(text) == pd.to_timedelta(text).to_pytimedelta()


@pytest.mark.parametrize("seconds", [0, 1170000.5, -3600, 86400 * 9_000_000, -0.000001])
def test_what_others_write(seconds):
    duration = datetime.timedelta(seconds=seconds)
    written = pd.Series(np.array([duration], dtype="timedelta64[us]"))
    for text in (str(duration), written.to_csv(index=False, header=False).strip(), str(written[0])):
        assert parse_duration(text) == duration
    assert parse_duration("-P1DT1S") == -datetime.timedelta(days=1, seconds=1)


@pytest.mark.parametrize("text", ["", "5", "13:00", "1:60:00", "days", "P", "PT", "P1DT", "99999999 days", "1 days x"])
def test_no_durations(text):
    assert to_durations(pa.array(["3 days", text])) is None


def test_columns():
    found = to_durations(pa.chunked_array([["3 days", None], ["PT1S"]]))
    assert found.to_pylist() == [datetime.timedelta(days=3), None, datetime.timedelta(seconds=1)]
    assert to_times(pa.array(["07:05", None, "23:59:59.5"])).to_pylist() == [
        datetime.time(7, 5),
        None,
        datetime.time(23, 59, 59, 500000),
    ]
    assert to_times(pa.array(["07:05", "25:00"])) is None
