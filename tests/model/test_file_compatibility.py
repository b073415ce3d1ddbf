"""Files of earlier versions load, and predict what they predicted then."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tartree import load
from tests.tolerances import within

FILES = Path(__file__).parent / "files_0.1"
EXPECTED = json.loads((FILES / "expected.json").read_text())


@pytest.fixture(scope="module")
def rows():
    table = pd.read_csv(FILES / "rows.csv", parse_dates=["admitted"])
    return table.assign(stay=pd.to_timedelta(table["stay"]))


def predict(name, model, rows):
    if name == "warm":
        rows = rows[["age"]].assign(dose=rows["dose"].fillna(0))
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows, return_std=True)


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.tart")))
def test_a_file_predicts_as_it_did(name, rows):
    model = load(FILES / f"{name}.tart")
    predicted = predict(name, model, rows)
    np.testing.assert_allclose(predicted, EXPECTED[name], rtol=0, atol=within(1e-12))


def test_records_of_a_model_are_kept():
    assert load(FILES / "simplified.tart").certificate_.leaves_after == 3
    assert load(FILES / "hardened.tart").hardening_ is not None
    assert load(FILES / "warm.tart").temperature_ > 0
