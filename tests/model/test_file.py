import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from tartree import TartClassifier, TartRegressor, load, persist
from tartree.model import file
from tartree.table import ColumnWarning
from tartree.training import Recipe

from ..estimators.test_base import mixed_frame
from ..tolerances import assert_same


def state_of(estimator):
    return file.to_state(estimator.model_, estimator.get_params(deep=False))


@pytest.fixture(scope="module")
def model():
    frame, label = mixed_frame()
    with pytest.warns(ColumnWarning, match="column 'id': left out"):
        return TartClassifier(depth=2, epochs=10, random_state=0).fit(frame, label), frame


def test_a_classifier_predicts_bit_for_bit_as_before(model, tmp_path):
    fitted, frame = model
    fitted.target_name_ = "diagnosis"
    fitted.save(tmp_path / "model.tart")
    again = load(tmp_path / "model.tart")
    assert_same(again.predict_proba(frame), fitted.predict_proba(frame))
    assert_same(again.predict(frame), fitted.predict(frame))
    np.testing.assert_array_equal(again.apply(frame), fitted.apply(frame))
    assert again.get_params() == fitted.get_params()
    assert again.target_name_ == "diagnosis"
    assert again.structure_ == fitted.structure_
    assert again.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    assert again.classes_.dtype == fitted.classes_.dtype


@pytest.mark.parametrize("labels", [[0, 1, 2], [1.0, 2.0, 3.0], ["a", "b", "ü"], [False, True, True]], ids=str)
def test_labels_keep_their_type(labels, tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=1, epochs=2).fit(X, np.array(labels)[y])
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.predict(X).dtype == fitted.predict(X).dtype


def test_object_labels(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=1, epochs=2).fit(X, np.array(["a", "b", "c"], dtype=object)[y])
    fitted.save(tmp_path / "m")
    assert_same(load(tmp_path / "m").predict(X), fitted.predict(X))


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("leaf_layers", [0, 2])
def test_a_regressor_predicts_bit_for_bit_as_before(members, leaf_layers, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    recipe = Recipe(epochs=3)
    fitted = TartRegressor(
        window=3, stride=2, depth=2, leaf_layers=leaf_layers, hidden=4, members=members, recipe=recipe
    ).fit(X, np.stack([y, -y], 1))
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert_same(again.predict(X), fitted.predict(X))
    assert_same(again.predict_quantiles(X[:5]), fitted.predict_quantiles(X[:5]))
    assert again.recipe == recipe


def test_class_weights_of_numbers_are_saved(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=1, epochs=2, class_weight={0: 1.0, 1: 2.0, 2: 3.0}).fit(X, y)
    fitted.save(tmp_path / "m")
    assert load(tmp_path / "m").get_params() == fitted.get_params()


def test_parameters_changed_after_fit_do_not_change_the_file(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=2, epochs=5, random_state=0).fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(branching="sparsemax", members=4, leaf_layers=3, depth=5, numeric="quantile")
    fitted.save(tmp_path / "m")
    assert_same(load(tmp_path / "m").predict_proba(X), before)


def test_dates_as_labels_cannot_be_saved_and_say_so(tmp_path):
    X, y = load_iris(return_X_y=True)
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    fitted = TartClassifier(depth=1, epochs=1).fit(X, days[y])
    with pytest.raises(ValueError, match="text, numbers or booleans to be saved"):
        fitted.save(tmp_path / "m")


def test_quantile_encoding_is_saved(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=1, epochs=2, numeric="quantile").fit(X, y)
    fitted.save(tmp_path / "m")
    assert_same(load(tmp_path / "m").predict_proba(X), fitted.predict_proba(X))


def test_a_file_from_a_machine_with_another_device_loads(model, tmp_path):
    fitted, frame = model
    document, arrays = state_of(fitted)
    document["parameters"]["device"] = "cuda:7"
    persist.write(tmp_path / "m", document, arrays)
    assert_same(load(tmp_path / "m").predict(frame), fitted.predict(frame))


def test_certificates_and_hardenings_stay_with_their_tree(tmp_path):
    X, y = load_iris(return_X_y=True)
    small = TartClassifier(depth=2, epochs=3, random_state=0).fit(X, y).simplify(X, max_leaves=2)
    hard = small.harden(X)
    assert not hasattr(hard, "certificate_")  # another tree
    assert not hasattr(hard.simplify(X, max_leaves=1), "hardening_")
    small.save(tmp_path / "small.tart")
    hard.save(tmp_path / "hard.tart")
    for again in (load(tmp_path / "small.tart"), pickle.loads(pickle.dumps(small))):
        assert again.certificate_ == small.certificate_
        assert not hasattr(again, "hardening_")
    for again in (load(tmp_path / "hard.tart"), pickle.loads(pickle.dumps(hard))):
        assert str(again.hardening_) == str(hard.hardening_)
        np.testing.assert_array_equal(again.hardening_.bounds, hard.hardening_.bounds)
        np.testing.assert_array_equal(again.hardening_.changes, hard.hardening_.changes)
    for refitted in (small, hard):
        refitted.fit(X, y)
        assert not hasattr(refitted, "certificate_")
        assert not hasattr(refitted, "hardening_")
    going_on = load(tmp_path / "small.tart").set_params(warm_start=True, depth=1, epochs=1)
    assert not hasattr(going_on.fit(X, y), "certificate_")


@pytest.mark.parametrize(
    "damage",
    [
        lambda d, a: d["certificate"].update(measured=2.0),
        lambda d, a: d["certificate"].update(low=[0.0]),
        lambda d, a: d["certificate"].pop("bound"),
        lambda d, a: d["certificate"].update(surprise=1),
        lambda d, a: d.update(hardening={"agreement": 1.0, "to_largest": 1.0, "unit": ""}),
    ],
)
def test_a_damaged_certificate(tmp_path, damage):
    X, y = load_iris(return_X_y=True)
    small = TartClassifier(depth=1, epochs=1, random_state=0).fit(X, y).simplify(X, max_leaves=1)
    small.certificate_ = replace(small.certificate_, bound=1.0)
    document, arrays = state_of(small)
    damage(document, arrays)
    persist.write(tmp_path / "m", document, arrays)
    with pytest.raises(persist.ModelFileError, match="does not fit together"):
        load(tmp_path / "m")


def test_what_cannot_be_saved_says_so(tmp_path):
    from tartree.nn import UniformDecision

    X, y = load_iris(return_X_y=True)
    fitted = TartClassifier(depth=1, epochs=1, decision=lambda s, f, m: UniformDecision(s, m)).fit(X, y)
    with pytest.raises(ValueError, match="decision, leaf and branching must be given by name"):
        fitted.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_200_mutated_files_give_an_error_or_the_same_model(model, tmp_path):
    fitted, frame = model
    path = tmp_path / "model.tart"
    fitted.save(path)
    content = path.read_bytes()
    want = fitted.predict_proba(frame)
    rng = np.random.default_rng(0)
    messages = []
    for turn in range(200):
        changed = bytearray(content)
        if turn % 4 == 0:  # some bytes changed
            for _ in range(rng.integers(1, 4)):
                changed[rng.integers(len(changed))] = rng.integers(256)
        elif turn % 4 == 1:  # cut
            del changed[rng.integers(len(changed)) :]
        elif turn % 4 == 2:  # two blocks swapped
            size = int(rng.integers(1, 64))
            a, b = sorted(rng.choice(len(changed) // size - 1, 2, replace=False) * size)
            changed[a : a + size], changed[b : b + size] = changed[b : b + size], changed[a : a + size]
        else:  # the length of the header changed
            changed[rng.integers(8)] = rng.integers(256)
        mutated = tmp_path / "mutated.tart"
        mutated.write_bytes(bytes(changed))
        try:
            again = load(mutated)
        except persist.ModelFileError as error:
            messages.append(str(error))
        else:
            assert_same(again.predict_proba(frame), want)
    assert len(messages) > 150
    assert all("mutated.tart" in message and "\n" not in message for message in messages)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d, a: d.pop("structure"),
        lambda d, a: d.update(estimator="os.system"),
        lambda d, a: d["structure"].update(depth=3),
        lambda d, a: d["parameters"].update(surprise=1),
        lambda d, a: d["fitted"].update(classes=["a", "b", "c"]),
        lambda d, a: d["fitted"].update(dtype="O8,O8"),
        lambda d, a: d.update(encoder={}),
        lambda d, a: d.update(parameters=None),
        lambda d, a: a.pop(next(name for name in a if name.startswith("tree."))),
        lambda d, a: a.update({"tree.extra": np.zeros(3)}),
    ],
)
def test_a_file_with_a_right_checksum_and_wrong_content(model, tmp_path, damage):
    fitted, _ = model
    document, arrays = state_of(fitted)
    damage(document, arrays)
    persist.write(tmp_path / "m", document, arrays)
    with pytest.raises(persist.ModelFileError, match="m"):
        load(tmp_path / "m")
