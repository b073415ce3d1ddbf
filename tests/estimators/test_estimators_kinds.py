"""Kinds of targets: what a new one brings along is enough to fit, save, load and explain it."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tartree import TartRegressor, explain, load
from tartree.cli.workflow.file_prediction import append_predictions
from tartree.estimators import ESTIMATORS
from tartree.model.target import CODECS, ValueCodec
from tartree.nn.outputs import OUTPUTS, RealOutput


class LogOutput(RealOutput):
    kind = "logarithms"
    has_linear_mean = False
    mean_text = "the exponential of the sum"
    javascript = "{ leaf: (numbers) => numbers.map((raw) => ({ mean: Math.exp(raw), spread: 0 })) }"

    def cost(self, numbers, target):
        return (numbers.exp() - target[..., None, :] * numbers).sum(-1)

    def mean(self, numbers):
        return numbers.exp()

    def function_names(self, names):
        return tuple(f"logarithm of {name}" for name in names)


@dataclass(frozen=True, eq=False)
class CountCodec(ValueCodec):
    kind: ClassVar[str] = "counts"
    estimator: ClassVar[str] = "CountRegressor"

    @property
    def output(self):
        return LogOutput(len(self.center))

    @property
    def function_scaling(self):
        return np.log(self.scale), np.ones(len(self.scale))

    @classmethod
    def learn(cls, values, weight, resumed, extrapolation):
        return cls(np.zeros(values.shape[1]), values.mean(axis=0))


class CountRegressor(TartRegressor):
    target_kind = "counts"


@pytest.fixture
def model(monkeypatch):
    for records, record in ((OUTPUTS, LogOutput), (CODECS, CountCodec)):
        monkeypatch.setitem(records, record.kind, record)
    monkeypatch.setitem(ESTIMATORS, CountCodec.kind, CountRegressor)
    return CountRegressor(depth=0, readable=True, epochs=30, random_state=0).fit(*table())


def table():
    x = np.linspace(-1, 1, 200)
    return x[:, None], np.round(np.exp(2 + x))


def test_every_kind_has_an_estimator():
    assert set(ESTIMATORS) == set(CODECS)
    for kind, estimator in ESTIMATORS.items():
        assert estimator.target_kind == CODECS[kind].kind == kind
        assert estimator.__name__ == CODECS[kind].estimator


def test_a_new_kind_is_saved_and_loaded(model, tmp_path):
    X, y = table()
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "model.tart")
    other = load(tmp_path / "model.tart")
    assert type(other) is CountRegressor
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    with pytest.raises(TypeError, match="must hold a spread"):
        model.predict(X, return_std=True)


def test_functions_of_leaves_are_shown_in_their_own_units(model):
    X, _ = table()
    tree = explain.view(model, X)
    (effects,) = tree.members[0].corrections[0]
    assert effects.name == "logarithm of target"
    middle = model.predict([[0.0]])[0]
    (curve,) = effects.effects
    at_middle = np.interp(0.0, *zip(*curve.points, strict=True))
    assert effects.constant + at_middle == pytest.approx(math.log(middle), abs=0.02)
    assert "The prediction is the exponential of the sum along the path." in explain.export_text(model, X)


def test_the_command_line_predicts_without_a_spread(model):
    X, _ = table()
    predicted = append_predictions(model.model_, pa.table({"x0": X[:, 0]}), X, proba=True)
    assert predicted.column_names == ["x0", "prediction"]
    np.testing.assert_array_equal(predicted["prediction"], model.predict(X))
