"""What every kind of column must do, whichever there are."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from tartree.table import TableEncoder
from tartree.table.columns import COLUMNS
from tartree.table.raw_table import read_table

FRAME = pd.DataFrame(
    {
        "numeric": [1.5, 2.0, None, 4.0],
        "boolean": [True, False, True, True],
        "category": ["x", "y", "x", "y"],
        "constant": ["same"] * 4,
    }
)


@pytest.fixture(scope="module")
def encoder():
    return TableEncoder().fit(FRAME)


def test_every_kind_is_tested_here(encoder):
    assert [column.kind for column in encoder.columns_] == list(FRAME) == list(COLUMNS)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_describes_itself(encoder, kind):
    index = list(FRAME).index(kind)
    column = encoder.columns_[index]
    features = column.features(index, kind)
    summary = column.summary
    assert json.dumps(dataclasses.asdict(summary))
    assert summary.typical in (*FRAME[kind], *summary.levels)
    plain = column.plain_values(read_table(FRAME).read(index), summary)
    assert json.dumps(plain, allow_nan=False)
    for position, feature in enumerate(features):
        assert np.isfinite(column.reference(feature, is_first=not position))
        assert column.usual_spread(feature) > 0
    if features:
        (row,) = encoder.transform(FRAME[:1])
        encoded = row[[k for k, feature in enumerate(encoder.features_) if feature.column == index]]
        cell = column.cell(encoded.astype(np.float64))
        assert cell == (pytest.approx(FRAME[kind][0]) if column.is_measured else FRAME[kind][0])
        assert column.is_measured or len(column.alternatives(np.ones(len(features)))) == 2
