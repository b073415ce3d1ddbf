"""Which codec reads the target of a saved model."""

import numpy as np
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


@pytest.mark.parametrize("high", [19.308665866522652, 0.1, 0.7, 1e9 + 0.3])
def test_decoded_means_are_within_the_limits_to_the_last_bit(high):
    values = np.array([[-high / 3], [high]])
    codec = ValueCodec.learn(values, None, None, extrapolation=0.0)
    low, top = (np.nextafter(np.float32(end), np.float32(direction)) for end, direction in ((-1, -2), (1, 2)))
    decoded = codec.decode_means(np.array([[low], [top], [0.5]], dtype=np.float64))
    assert codec.limits is not None
    np.testing.assert_array_equal(decoded[:2, 0], codec.limits[0])
    assert decoded[2, 0] == pytest.approx(codec.center[0] + 0.5 * codec.scale[0])
    unlimited = ValueCodec(codec.center, codec.scale)
    assert unlimited.decode_means(np.array([[2.0]])) > high
