"""Curves: a number with features of its bins."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from tartree.model.memory_source import curve_features
from tartree.table import TableEncoder, TableStatistics
from tartree.table.expansion import bins_of

ROWS = 200


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "skewed": np.exp(rng.normal(size=ROWS)),
            "few": rng.integers(0, 4, ROWS),
            "two": rng.integers(0, 2, ROWS),
            "gaps": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS)),
            "colour": rng.choice(["red", "blue"], ROWS),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS), unit="D"),
        }
    )


def test_features_of_a_curve():
    encoder = TableEncoder(numeric="curve", n_bins=4).fit(frame())
    counts = pd.Series([feature.name for feature in encoder.features_ if feature.kind == "bin"]).value_counts()
    # A number with four values has its three gaps, one with two values needs no curve.
    assert counts.to_dict() == {"skewed": 4, "few": 3, "gaps": 4, "day": 4}
    names = list(encoder.get_feature_names_out())
    assert names[:2] == ["skewed", next(name for name in names if name.startswith("skewed=("))]
    assert len(set(names)) == len(names)


def test_values_of_a_curve():
    X = frame()
    encoder = TableEncoder(numeric="curve", n_bins=4).fit(X)
    plain = TableEncoder().fit(X)
    encoded = encoder.transform(X)
    is_value = np.array([feature.bin is None for feature in encoder.features_])
    assert np.array_equal(encoded[:, is_value], plain.transform(X))
    for k, feature in enumerate(encoder.features_):
        if feature.bin is None:
            value = encoded[:, k].astype(np.float64)
        else:
            assert np.allclose(encoded[:, k], feature.bin.at(value), atol=1e-6)
    skewed = encoded[:, [feature.bin is not None and feature.name == "skewed" for feature in encoder.features_]]
    assert abs(skewed.mean(axis=0)).max() < 0.15  # equally many rows in each bin


def test_any_piecewise_linear_function_is_a_linear_one():
    x = np.linspace(0, 10, 101)
    encoder = TableEncoder(numeric="curve", n_bins=5).fit(x[:, None])
    corners = encoder.features_[0].scaling.decode(np.array(encoder.columns_[0].edges))
    y = np.interp(x, corners, [0.0, 3.0, -1.0, 2.0, 2.0, 7.0])
    design = np.column_stack([encoder.transform(x[:, None]), np.ones(len(x))])
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.allclose(design @ weights, y, atol=1e-5)


def test_decoding():
    X = frame()
    encoder = TableEncoder(numeric="curve").fit(X)
    decoded = encoder.inverse_transform(encoder.transform(X))
    assert np.allclose(decoded["skewed"], X["skewed"], rtol=1e-5)
    assert (decoded["few"] == X["few"]).all()
    assert (decoded["colour"] == X["colour"]).all()
    assert (pd.to_datetime(decoded["day"]).to_numpy() == X["day"].to_numpy()).all()


@pytest.mark.parametrize("n_bins", [2, 8])
def test_state(n_bins):
    X = frame()
    encoder = TableEncoder(numeric="curve", n_bins=n_bins).fit(X)
    state, arrays = encoder.get_state()
    again = TableEncoder.from_state(json.loads(json.dumps(state)), arrays)
    assert again.features_ == encoder.features_
    assert np.array_equal(again.transform(X), encoder.transform(X))


@pytest.mark.parametrize("edges", [[0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 2.0], "ab", [0.0, 1.0, 1e9], [0, 1, 2, 3, 4, 5]])
def test_damaged_edges(edges):
    state, arrays = TableEncoder(numeric="curve", n_bins=4).fit(frame()).get_state()
    state["columns"][0]["edges"] = edges
    with pytest.raises(ValueError, match="edges of bins"):
        TableEncoder.from_state(state, arrays)


def test_chunks_of_a_table_have_the_same_bins():
    X = frame()
    whole = TableEncoder(numeric="curve").fit(X)
    statistics = TableStatistics()
    for start in range(0, ROWS, 50):
        statistics.update(X.iloc[start : start + 50])
    streamed = TableEncoder(numeric="curve").fit_statistics(statistics)
    assert list(streamed.get_feature_names_out()) == list(whole.get_feature_names_out())
    assert np.allclose(streamed.transform(X), whole.transform(X), atol=1e-5)


def test_the_same_on_a_device():
    X = frame()
    encoder = TableEncoder(numeric="curve", n_bins=3).fit(X)
    encoded = torch.from_numpy(encoder.transform(X))
    curves = curve_features(encoder, torch.device("cpu"))
    values = curves.values_of(encoded)
    assert values.shape[1] == encoder.expansion_.n_values
    assert torch.allclose(curves.of(values), encoded, atol=1e-5)
    members = encoded.expand(2, 3, *encoded.shape)
    assert curves.of(curves.values_of(members)).shape == members.shape
    assert curve_features(TableEncoder().fit(X), torch.device("cpu")) is None


def test_bins_are_centred_for_equally_frequent_values():
    bins = bins_of((-1.0, 0.0, 2.0, 3.0))
    middles = np.array([-0.5, 1.0, 2.5])
    assert np.allclose([part.at(middles).mean() for part in bins], 0)
