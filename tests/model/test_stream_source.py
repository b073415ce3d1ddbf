"""Fitting to Parquet files and predicting them, in a stream and in memory."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from tartree import TartClassifier, TartRegressor, load
from tartree.model import pipeline, stream_blocks
from tartree.model.stream_blocks import draws
from tartree.model.stream_source import StreamSource
from tartree.table import ParquetTable, sketch
from tartree.table.columns import category
from tartree.training import SINGLE_WORKER
from tartree.training.recipe import Recipe
from tartree.training.shards import Shards
from tests.pair import together

from ..tolerances import assert_same, within

N_FILES, FILE_ROWS = 3, 1500


def rows_of(number):
    rng = np.random.default_rng([7, number])
    x = rng.normal(size=(FILE_ROWS, 3))
    colour = rng.choice(["red", "green", "blue"], FILE_ROWS)
    score = x[:, 0] * 2 + (colour == "red") + 0.1 * rng.normal(size=FILE_ROWS)
    gaps = rng.random(FILE_ROWS) < 0.05
    return pa.table(
        {
            "a": x[:, 0].astype(np.float32),
            "b": pa.array(x[:, 1], mask=gaps),
            "colour": pa.array(colour, mask=rng.random(FILE_ROWS) < 0.02),
            "day": pa.array(rng.integers(0, 20_000, FILE_ROWS).astype(np.int32), pa.date32()),
            "label": np.where(score > 0.4, "yes", "no"),
            "value": 100 + 5 * score,
            "weight": rng.integers(0, 3, FILE_ROWS).astype(float),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    for number in range(N_FILES):
        pq.write_table(rows_of(number), path / f"rows-{number}.parquet", row_group_size=400)
    return path


@pytest.fixture(scope="module")
def whole(folder):
    return pq.read_table(sorted(folder.glob("*.parquet")))


def stream(folder, *drop, in_memory=False):
    return ParquetTable(folder, drop=list(drop), in_memory=in_memory)


def classifier(**more):
    return TartClassifier(depth=2, epochs=8, batch_size=256, random_state=0, **more)


def test_a_streamed_classifier_is_as_good_as_one_in_memory(folder, whole):
    columns = ["a", "b", "colour", "day"]
    scores = {}
    for in_memory in (True, False):
        model = classifier().fit(stream(folder, "value", "weight", in_memory=in_memory), y="label")
        assert model.streamed_ is not in_memory
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.feature_names_in_.tolist() == columns
        predicted = model.predict(folder)
        assert np.array_equal(predicted, model.predict(whole.select(columns)))  # in order, whatever the way
        np.testing.assert_allclose(
            model.predict_proba(folder), model.predict_proba(whole.select(columns)), atol=within(1e-12)
        )
        assert model.apply(str(folder)).shape == (whole.num_rows,)
        scores[in_memory] = np.mean(predicted == whole["label"].to_numpy())
        assert model.feature_importances_.argmax() == 0
    assert scores[False] > 0.95
    assert abs(scores[True] - scores[False]) < 0.01


def test_depth_by_itself_follows_the_rows_with_weight(folder, whole):
    from_files = classifier().set_params(depth="auto", readable=False, epochs=1)
    for share, depth in ((0.2, 4), (0.4, 6)):
        counted = np.arange(whole.num_rows) < share * whole.num_rows
        table = whole.set_column(whole.column_names.index("weight"), "weight", pa.array(counted.astype(float)))
        for in_memory in (True, False):
            model = fit_table(from_files, table, folder.parent / f"{share}-{in_memory}", in_memory)
            assert model.get_depth() == depth


def fit_table(model, table, path, in_memory):
    path.mkdir()
    pq.write_table(table, path / "rows.parquet", row_group_size=400)
    return clone(model).fit(ParquetTable(path, in_memory=in_memory), y="label", sample_weight="weight")


def test_a_streamed_regressor_with_weights(folder, whole):
    found = {}
    for in_memory in (True, False):
        table = stream(folder, "label", in_memory=in_memory)
        model = TartRegressor(depth=1, epochs=8, batch_size=256, random_state=0).fit(table, "value", "weight")
        values = whole["value"].to_numpy()
        found[in_memory] = model.target_center_, model.target_scale_
        mean, spread = model.predict(folder, return_std=True)
        assert 1 - np.mean((mean - values) ** 2) / values.var() > 0.9
        assert spread.shape == (whole.num_rows,)
        assert model.predict_quantiles(folder, [0.5]).shape == (whole.num_rows, 1)
    np.testing.assert_allclose(found[False], found[True], rtol=within(1e-12))


def test_several_targets(folder, whole):
    table = ParquetTable(folder, columns=["a", "colour", "value", "b"], in_memory=False)
    model = TartRegressor(depth=1, epochs=2, early_stopping=False, random_state=0)
    with pytest.raises(ValueError, match=r"rows-0\.parquet: target 'b' must have a value in every row"):
        model.fit(table, ["value", "b"])
    assert not hasattr(model, "tree_")
    model.fit_source(StreamSource(table, ["value", "b"], drop_missing_target=True))
    assert model.predict(folder).shape == (whole.num_rows, 2)


def trained_rows(model, table, target, weight=None):
    """All batches of a run, as they are learnt from."""
    from tartree.training import step

    seen = []
    learn = step.Step.learn

    def listen(self, x, batch, pace):
        seen.append(batch)
        return learn(self, x, batch, pace)

    step.Step.learn = listen
    try:
        model.fit(table, target, weight)
    finally:
        step.Step.learn = learn
    return seen


def test_every_row_is_learnt_from_once_an_epoch(folder, whole):
    recipe = Recipe(epochs=2, batch_size=256, jitter=0.0)
    model = TartClassifier(depth=1, recipe=recipe, early_stopping=False, numeric="plain", random_state=0)
    table = ParquetTable(folder, columns=["a", "label"], in_memory=False)
    seen = trained_rows(model, table, "label")
    n_steps = -(-whole.num_rows // 256)
    assert len(seen) == 2 * n_steps
    sizes = [len(batch.x) for batch in seen]
    assert max(sizes) - min(sizes) <= 8
    for epoch in (seen[:n_steps], seen[n_steps:]):
        values = np.concatenate([batch.x[:, 0].cpu().numpy() for batch in epoch])
        labels = np.concatenate([batch.target.cpu().numpy() for batch in epoch])
        order, expected = np.argsort(values), np.argsort(whole["a"].to_numpy())
        np.testing.assert_array_equal(values[order], whole["a"].to_numpy()[expected])
        assert np.array_equal(labels[order] == 1, (whole["label"].to_numpy() == "yes")[expected])
    first, second = (
        np.concatenate([b.x[:, 0].cpu().numpy() for b in part]) for part in (seen[:n_steps], seen[n_steps:])
    )
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[: sizes[0]], whole["a"].to_numpy()[: sizes[0]])


def test_class_weights_and_sample_weights_are_those_of_memory(folder, whole):
    weights = whole["weight"].to_numpy()
    labels = whole["label"].to_numpy()
    for class_weight in (None, "balanced", {"no": 3.0}):
        recipe = Recipe(epochs=1, batch_size=512, jitter=0.0)
        model = TartClassifier(
            depth=1, recipe=recipe, early_stopping=False, numeric="plain", class_weight=class_weight, random_state=0
        )
        table = ParquetTable(folder, columns=["a", "label", "weight"], in_memory=False)
        seen = trained_rows(model, table, "label", "weight")
        values, own = (np.concatenate(p) for p in zip(*((b.x[:, 0].cpu(), b.weight.cpu()) for b in seen), strict=True))
        found = dict(zip(values.tolist(), own.tolist(), strict=True))
        expected = weights * (1 if class_weight is None else compute_sample_weight(class_weight, labels))
        expected = expected / expected[expected > 0].mean()
        own = [found[value] for value in whole["a"].to_pylist()]
        np.testing.assert_allclose(own, expected, rtol=1e-5)


def test_early_stopping_holds_out_the_same_rows(folder, whole):
    model = classifier(early_stopping=True).fit(stream(folder, "value", "weight"), "label")
    assert model.history_["validation_loss"].shape == (len(model.history_), 1)
    again = classifier(early_stopping=True).fit(stream(folder, "value", "weight"), "label")
    assert_same(model.history_["validation_loss"], again.history_["validation_loss"])
    assert_same(model.predict_proba(folder), again.predict_proba(folder))
    refitted = classifier(early_stopping="refit").fit(stream(folder, "value", "weight"), "label")
    assert len(refitted.refit_history_) == refitted.history_.best_epoch.max()
    drawn = draws(3, 0, 100_000)
    assert abs((drawn < 0.1).mean() - 0.1) < 0.005
    np.testing.assert_array_equal(draws(3, 500, 100), drawn[500:600])
    assert not np.array_equal(draws(4, 0, 100), drawn[:100])


def fit_with_workers(make, table, target, weight=None, size=2):
    """Estimators that workers have fitted together."""

    def work(worker):
        model = make()
        model.fit_source(StreamSource(table, [target], weight), workers=worker)
        return model

    return together(work, size)


def test_a_worker_group_fits_what_one_worker_fits(folder):
    """Two workers in threads: the same batches, gradients put together, early stopping decided together."""
    alone = classifier(early_stopping=True).fit(stream(folder, "value", "weight"), "label")
    models = fit_with_workers(lambda: classifier(early_stopping=True), stream(folder, "value", "weight"), "label")
    for model in models:
        np.testing.assert_allclose(model.predict_proba(folder), alone.predict_proba(folder), atol=1e-5)
        np.testing.assert_allclose(model.history_["validation_loss"], alone.history_["validation_loss"], atol=1e-5)
    assert_same(models[0].predict_proba(folder), models[1].predict_proba(folder))


@pytest.mark.parametrize("numeric", ["standard", "quantile"])
def test_the_encoding_is_the_same_for_any_number_of_workers(folder, monkeypatch, numeric):
    """To the last bit, also where there are more values and more texts than are counted one by one."""
    monkeypatch.setattr(sketch, "SIZE", 128)
    monkeypatch.setattr(category, "MOST_LEVELS", 2)

    def make():
        recipe = Recipe(epochs=1, batch_size=2048)
        return TartClassifier(depth=1, recipe=recipe, early_stopping=False, numeric=numeric, random_state=0)

    def fitted(size):
        table = stream(folder, "value")
        if size == 1:
            return [make().fit(table, "label", "weight")]
        return fit_with_workers(make, table, "label", "weight", size)

    alone = fitted(1)[0]
    assert alone.encoder_.columns_[1].gaps  # the median fills its gaps
    for size in (2, 3):
        models = fitted(size)
        assert all(model.encoder_.columns_ == alone.encoder_.columns_ for model in models)
        np.testing.assert_allclose(models[0].predict_proba(folder), alone.predict_proba(folder), atol=1e-5)


def test_a_regression_is_standardised_the_same_by_any_number_of_workers(folder):
    def make():
        return TartRegressor(depth=1, epochs=1, early_stopping=False, random_state=0)

    alone = make().fit(stream(folder, "label"), "value", "weight")
    for model in fit_with_workers(make, stream(folder, "label"), "value", "weight"):
        assert (model.target_center_ == alone.target_center_).all()
        assert (model.target_scale_ == alone.target_scale_).all()


def test_held_out_rows_with_weight_may_all_be_with_one_worker(whole, tmp_path):
    """In the second of eight shards: the first worker has nothing to stop by, and neither has most of the table."""
    whole = whole.select(["a", "b", "label", "weight"])
    pq.write_table(whole, tmp_path / "rows.parquet", row_group_size=400)
    table = ParquetTable(tmp_path, in_memory=False)
    second = Shards.deal([block.rows for block in table.blocks]).blocks[1]
    seed = int(classifier().spec().draw_seeds()[0])
    out = draws(seed, 0, whole.num_rows) < Recipe().validation_fraction
    for block in second:
        start, n_rows = table.blocks[block].first, table.blocks[block].rows
        out[start : start + n_rows] = False
    weights = np.where(out, 0.0, 1.0)
    pq.write_table(whole.set_column(3, "weight", pa.array(weights)), tmp_path / "rows.parquet", row_group_size=400)
    table = ParquetTable(tmp_path, in_memory=False)
    alone = classifier(early_stopping=True).fit(table, "label", "weight")
    assert np.isfinite(alone.history_["validation_loss"]).all()
    for model in fit_with_workers(lambda: classifier(early_stopping=True), table, "label", "weight"):
        np.testing.assert_allclose(model.history_["validation_loss"], alone.history_["validation_loss"], atol=1e-5)
        np.testing.assert_allclose(model.predict_proba(table), alone.predict_proba(table), atol=1e-5)


class MemoryStore:
    """Keeps the last state in memory; it may lose the worker after an epoch."""

    def __init__(self, stop_after=None, state=None):
        self.stop_after, self.state = stop_after, state

    def load(self):
        return self.state

    def save(self, epoch, state):
        self.state = state()
        if epoch == self.stop_after:
            raise ConnectionError("the worker is lost")


def cut_off(model, table, epoch, workers=SINGLE_WORKER):
    """The state of a fit that was cut off after an epoch."""
    store = MemoryStore(stop_after=epoch)
    with pytest.raises(ConnectionError):
        model.fit_source(StreamSource(table, ["label"]), workers=workers, checkpoints=store)
    return store.state


def test_a_resumed_run_equals_one_that_was_not_cut_off(folder):
    table = stream(folder, "value", "weight")
    whole = classifier(early_stopping=True).fit(table, "label")
    cut = classifier(early_stopping=True)
    store = MemoryStore(state=cut_off(cut, table, 3))
    assert not hasattr(cut, "tree_")
    cut.fit_source(StreamSource(table, ["label"]), checkpoints=store)
    assert len(cut.history_) == len(whole.history_)
    assert_same(cut.predict_proba(folder), whole.predict_proba(folder))
    finished = classifier(early_stopping=True)
    finished.fit_source(StreamSource(table, ["label"]), checkpoints=store)  # nothing is left to do
    assert_same(finished.predict_proba(folder), whole.predict_proba(folder))
    np.testing.assert_allclose(finished.feature_importances_, whole.feature_importances_)


def test_a_run_is_resumed_with_more_workers(folder, monkeypatch):
    monkeypatch.setattr(sketch, "SIZE", 128)
    table = stream(folder, "value", "weight")

    def make():
        return classifier(early_stopping=True).set_params(epochs=4)

    def begin(worker):
        return cut_off(make(), table, 2, worker)

    def end(worker):
        model = make()
        model.fit_source(StreamSource(table, ["label"]), workers=worker, checkpoints=MemoryStore(state=state))
        return model

    whole = make().fit(table, "label")
    state = together(begin, 2)[0]
    model = together(end, 3)[2]
    assert model.encoder_.columns_ == whole.encoder_.columns_
    np.testing.assert_allclose(model.predict_proba(folder), whole.predict_proba(folder), atol=1e-5)


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Labels that nothing tells of: what is learnt beyond the first epochs makes other rows worse."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=600) for name in "abcd"} | {"label": rng.integers(0, 2, 600)}
    path = tmp_path_factory.mktemp("noise")
    pq.write_table(pa.table(columns), path / "rows.parquet", row_group_size=100)
    return ParquetTable(path, in_memory=False)


@pytest.mark.parametrize("more", [{}, {"dropout": 0.5, "leaf_layers": 2}])
def test_what_was_best_before_a_run_was_cut_off_stays_best(noise, more):
    """The best epoch is before the cut and patience ends after it; dropout goes on with the same random numbers."""

    def make():
        recipe = Recipe(epochs=40, batch_size=64, learning_rate=0.1, patience=6, jitter=0.0)
        return TartClassifier(depth=3, recipe=recipe, early_stopping=True, random_state=0, **more)

    whole = make().fit(noise, "label")
    last, best = len(whole.history_), int(whole.history_.best_epoch[0])
    assert best + 6 == last < 40
    cut = make()
    cut.fit_source(StreamSource(noise, ["label"]), checkpoints=MemoryStore(state=cut_off(make(), noise, best + 2)))
    assert len(cut.history_) == last
    assert cut.history_.best_epoch.tolist() == [best]
    assert_same(cut.history_["loss"], whole.history_["loss"])
    assert_same(cut.predict_proba(noise), whole.predict_proba(noise))


def test_interrupting_keeps_what_was_learnt_and_ends_the_reading(folder):
    def interrupt(epoch):
        if epoch.number == 3:
            raise KeyboardInterrupt

    model = classifier(callbacks=interrupt, early_stopping=True)
    with pytest.warns(UserWarning, match="interrupted after 3 of 8 epochs"):
        model.fit(stream(folder, "value", "weight"), "label")
    assert model.history_.interrupted
    assert np.mean(model.predict(folder) == "yes") > 0.1
    assert not [thread for thread in threading.enumerate() if thread.name == "tartree-stream"]


def test_warm_start_goes_on(folder):
    table = stream(folder, "value", "weight")
    model = classifier(warm_start=True).fit(table, "label")
    loss = model.history_["loss"][-1]
    encoder = model.encoder_
    model.fit(table, "label")
    assert model.encoder_ is encoder
    assert model.history_["loss"][0] < loss + 0.02
    with pytest.raises(ValueError, match="warm_start must keep the columns"):
        model.fit(stream(folder, "value", "weight", "a"), "label")


def test_a_saved_model_predicts_files(folder, tmp_path):
    model = classifier().fit(stream(folder, "value", "weight"), "label")
    model.save(tmp_path / "model.tart")
    again = load(tmp_path / "model.tart")
    assert_same(again.predict_proba(folder), model.predict_proba(folder))
    assert again.target_name_ == "label"


def test_small_tables_are_read_into_memory(folder, monkeypatch):
    assert ParquetTable(folder).in_memory
    model = classifier().fit(folder, "label")
    assert not model.streamed_
    from tartree.table.parquet import parquet_table

    monkeypatch.setattr(parquet_table, "IN_MEMORY_VALUES", 100)
    assert not ParquetTable(folder).in_memory
    assert classifier().set_params(epochs=1).fit(folder, "label").streamed_


def damaged(folder, tmp_path, change):
    for file in folder.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change(tmp_path / "rows-1.parquet")
    return tmp_path


def rewrite(change):
    def write(path):
        pq.write_table(change(pq.read_table(path)), path)

    return write


def infinite(table):
    values = table["a"].to_numpy().copy()
    values[7] = np.inf
    return table.set_column(0, "a", pa.array(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rewrite(lambda t: t.drop_columns(["b"])), r"rows-1\.parquet must have the column 'b'"),
        (rewrite(lambda t: t.set_column(1, "b", t["b"].cast(pa.string()))), r"rows-1\.parquet: column 'b' must be of"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), r"rows-1\.parquet must be a Parquet file"),
        (rewrite(infinite), r"rows-1\.parquet: column 'a' must hold finite numbers"),
        (
            rewrite(lambda t: t.set_column(4, "label", pa.nulls(t.num_rows, pa.string()))),
            r"rows-1\.parquet: target 'label' must have a value in every row",
        ),
    ],
)
def test_a_wrong_file_is_named_before_training(folder, tmp_path, change, message, monkeypatch):
    place = damaged(folder, tmp_path, change)
    monkeypatch.setattr(pipeline, "train", lambda *a, **k: pytest.fail("training has begun"))
    model = classifier()
    with pytest.raises(ValueError, match=message):
        model.fit(stream(place), "label")
    assert not hasattr(model, "tree_")
    assert not hasattr(model, "encoder_")


def test_weights_must_be_numbers(folder, tmp_path):
    change = rewrite(lambda t: t.set_column(6, "weight", pa.array(np.full(t.num_rows, -1.0))))
    place = damaged(folder, tmp_path, change)
    with pytest.raises(ValueError, match=r"rows-1\.parquet: sample_weight 'weight' must hold numbers of at least 0"):
        classifier().fit(stream(place), "label", "weight")
    with pytest.raises(ValueError, match="sample_weight 'colour' must hold numbers, got type string"):
        classifier().fit(stream(folder), "label", "colour")


def test_wrong_arguments(folder):
    table = stream(folder)
    with pytest.raises(ValueError, match="y must be the name of the target column"):
        classifier().fit(table, np.zeros(3))
    with pytest.raises(ValueError, match="sample_weight must be the name of a column"):
        classifier().fit(table, "label", np.zeros(3))
    with pytest.raises(ValueError, match="must have the column 'nope'"):
        classifier().fit(table, "nope")
    with pytest.raises(ValueError, match="different columns"):
        classifier().fit(table, "label", "label")
    with pytest.raises(ValueError, match="one target column"):
        classifier().fit(table, ["label", "colour"])
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(table, "value")
    with pytest.raises(ValueError, match="target 'colour' must hold numbers"):
        TartRegressor().fit(table, "colour")
    with pytest.raises(ValueError, match="needs the optimizer 'adam', got 'lbfgs'"):
        TartClassifier(recipe=Recipe(optimizer="lbfgs"), early_stopping=False).fit(table, "label")
    labels = rows_of(0)["label"].to_numpy()
    fitted = clone(classifier()).fit(np.random.default_rng(0).normal(size=(FILE_ROWS, 2)), labels)
    with pytest.raises(ValueError, match="must know the names of its columns"):
        fitted.predict(folder)
    with pytest.raises(ValueError, match=r"rows-0\.parquet must have the column 'z'"):
        classifier().fit(rows_of(0).select(["a"]).rename_columns(["z"]), labels).predict(folder)


def test_labels_of_other_types(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    for labels, expected in (
        ((x > 0).astype(np.int8), [0, 1]),
        ((x > 0).astype(float), [0, 1]),
        (x > 0, [False, True]),
        (pa.array(np.where(x > 0, "b", "a")).dictionary_encode(), ["a", "b"]),
    ):
        pq.write_table(pa.table({"x": x, "y": labels}), tmp_path / "rows.parquet", row_group_size=500)
        for in_memory in (True, False):
            table = ParquetTable(tmp_path, in_memory=in_memory)
            model = TartClassifier(depth=1, epochs=9, batch_size=256, random_state=0).fit(table, "y")
            assert model.classes_.tolist() == expected
            assert np.mean(model.predict(tmp_path) == np.array(expected)[(x > 0).astype(int)]) > 0.95


def test_statistics_read_each_block_once(folder):
    table = stream(folder, "value", "weight")
    roles = stream_blocks.Roles(["a", "b", "colour", "day"], ["label"], None, seed=1)
    target = classifier().spec().codec_type.statistics(1)
    found = stream_blocks.collect_statistics(
        stream_blocks.RawBlocks(table, roles), range(len(table.blocks)), target, stream_blocks.SplitFractions(0.2)
    )
    assert set(found.rows) == set(range(len(table.blocks)))
    assert sum(map(sum, found.rows.values())) == table.n_rows == found.columns.n_rows
    assert abs(sum(held for _, held in found.rows.values()) / table.n_rows - 0.2) < 0.03
    assert sum(row[0] for row in target.counts.values()) == table.n_rows


def test_files_may_hold_narrower_labels_than_others(tmp_path):
    x = np.random.default_rng(0).normal(size=600)
    for name, high, kind in (("0", 1, np.int8), ("1", 300, np.int64)):
        pq.write_table(pa.table({"x": x, "y": np.where(x > 0, high, 0).astype(kind)}), tmp_path / f"{name}.parquet")
    model = TartClassifier(depth=1, epochs=2, random_state=0).fit(ParquetTable(tmp_path, in_memory=False), "y")
    assert model.classes_.tolist() == [0, 1, 300]


def test_an_infinite_target_is_named_before_training(folder, tmp_path):
    def change(table):
        values = table["value"].to_numpy().copy()
        values[3] = np.inf
        return table.set_column(table.schema.get_field_index("value"), "value", pa.array(values))

    place = damaged(folder, tmp_path, rewrite(change))
    with pytest.raises(ValueError, match=r"rows-1\.parquet: target 'value' must be finite, but row 3 "):
        TartRegressor(epochs=1).fit(ParquetTable(place, in_memory=False), "value")


@pytest.mark.parametrize("kind", ["weights", "classes", "values"])
def test_early_stopping_needs_rows_with_weight_to_stop_by(folder, whole, tmp_path, kind, monkeypatch):
    """Those that are held out have none: an error before training, not a loss that is no number."""
    monkeypatch.setattr(pipeline, "train", lambda *a, **k: pytest.fail("training has begun"))
    seed = int(classifier().spec().draw_seeds()[0])
    out = draws(seed, 0, whole.num_rows) < Recipe().validation_fraction
    label = pa.array(np.where(out, "never", whole["label"].to_numpy()))
    rows = whole.select(["a", "value"]).append_column("label", label).append_column("weight", pa.array(1.0 - out))
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=400)
    target, weight, more = {
        "weights": ("label", "weight", {}),
        "classes": ("label", None, {"class_weight": {"never": 0.0, "yes": 1.0, "no": 1.0}}),
        "values": ("value", "weight", {}),
    }[kind]
    model = classifier(early_stopping=True, **more)
    if kind == "values":
        model = TartRegressor(early_stopping=True, random_state=0)
    drop = [name for name in ("label", "value", "weight") if name not in (target, weight)]
    message = rf"holds out 0 of {(~out).sum():,} rows with weight; use early_stopping=False"
    with pytest.raises(ValueError, match=message):
        model.fit(stream(tmp_path, *drop), target, weight)
    assert not hasattr(model, "encoder_")


def test_a_fit_in_memory_that_fails_changes_nothing(folder, tmp_path):
    one_class = rewrite(lambda t: t.set_column(4, "label", pa.array(["yes"] * t.num_rows)))
    place = damaged(folder, tmp_path, lambda path: [one_class(file) for file in tmp_path.glob("*.parquet")])
    fresh = classifier()
    with pytest.raises(ValueError, match="at least two classes"):
        fresh.fit(place, "label")
    assert vars(fresh) == vars(classifier())
    model = classifier().fit(stream(folder, "value", "weight", in_memory=True), "label")
    before = dict(vars(model))
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(place, "label")
    assert all(vars(model)[name] is value for name, value in before.items())
    assert len(vars(model)) == len(before)
    assert model.predict(folder).shape == (N_FILES * FILE_ROWS,)


def test_a_warm_start_that_fails_leaves_the_weights(folder):
    model = classifier(warm_start=True, dropout=0.5, leaf_layers=2).fit(stream(folder, in_memory=True), "label")
    expected = model.predict_proba(folder)

    def fail(epoch):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        model.set_params(callbacks=[fail]).fit(stream(folder, in_memory=True), "label")
    assert_same(model.predict_proba(folder), expected)


def test_scores_of_files(folder, whole):
    model = classifier().fit(stream(folder, "value", "weight"), "label")
    expected = model.score(folder, whole["label"].to_numpy())
    assert model.score(folder, "label") == expected
    weights = whole["weight"].to_numpy()
    assert model.score(folder, "label", "weight") == model.score(folder, whole["label"].to_numpy(), weights)
    regressor = TartRegressor(depth=1, epochs=2, random_state=0).fit(stream(folder, "label", "weight"), "value")
    assert regressor.score(folder, "value") == regressor.score(folder, whole["value"].to_numpy())
    with pytest.raises(ValueError, match=r"rows-0\.parquet must have the column 'nope'"):
        model.score(folder, "nope")
