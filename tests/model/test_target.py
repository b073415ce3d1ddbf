"""Which codec reads the target of a saved model."""

import pytest

from tartree.model.target import CODECS, ClassCodec, ValueCodec, saved_codec


def test_a_state_without_a_name_has_the_codec_of_its_estimator():
    for codec in CODECS.values():
        assert saved_codec(codec.estimator, {}) is codec
    assert saved_codec("TartClassifier", {}) is ClassCodec


def test_a_state_may_name_its_codec():
    assert saved_codec("TartRegressor", {"codec": "regression"}) is ValueCodec
    with pytest.raises(KeyError):
        saved_codec("TartRegressor", {"codec": "unknown"})
