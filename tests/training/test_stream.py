"""Streams: shards that do not depend on workers, buffers that mix, and a thread that ends."""

import threading
import time
from contextlib import closing

import numpy as np
import pytest
import torch

from tartree.nn import Classes, Tree
from tartree.structure import Structure
from tartree.training import Recipe, train
from tartree.training.shards import Chunk, Shard, Shards
from tartree.training.stream import SplitFractions, StreamRows, prefetch
from tartree.training.worker_group import SingleWorker
from tests.pair import together

from ..optional import given, settings, st

CPU = torch.device("cpu")


class Numbered:
    """Blocks whose rows are numbered: row `i` has the features `i` and -1, and the draw `i / n`."""

    def __init__(self, sizes, piece_rows=7, weighted=False):
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.piece_rows, self.weighted = piece_rows, weighted

    def read(self, block):
        rows = np.arange(self.starts[block], self.starts[block + 1])
        for start in range(0, len(rows), self.piece_rows):
            yield self.chunk(rows[start : start + self.piece_rows])

    def kept(self, fractions):
        """Rows of each block that are not held out."""
        blocks = range(len(self.starts) - 1)
        return {b: sum(int((chunk.draw >= fractions.held_out).sum()) for chunk in self.read(b)) for b in blocks}

    def empty(self):
        return self.chunk(np.empty(0, dtype=np.int64))

    def chunk(self, rows):
        x = np.stack([rows, np.full(len(rows), -1)], axis=1).astype(np.float32)
        weight = (1 + rows % 3).astype(np.float32) if self.weighted else None
        return Chunk(x, rows % 2, weight, (rows * 0.6180339887) % 1)


def numbers(batches):
    return [batch.x[:, 0].long().tolist() for batch in batches]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(1, 8), st.integers(1, 9), st.integers(0, 99))
def test_all_rows_come_once_whoever_serves_the_shards(sizes, n_shards, n_steps, seed):
    fractions = SplitFractions(held_out=0.2)
    blocks = Numbered(sizes)
    drawn = blocks.chunk(np.arange(sum(sizes))).draw
    shards = Shards.deal(sizes, n_shards).count(blocks.kept(fractions))

    def stream(served=None):
        rows = StreamRows(blocks, shards, fractions, seed=seed, device=CPU, served=served)
        return rows, numbers(rows.epoch(0, n_steps, 0.0))

    rows, whole = stream()
    assert len(rows) == (drawn >= 0.2).sum()
    assert sorted(number for batch in whole for number in batch) == np.flatnonzero(drawn >= 0.2).tolist()
    assert [len(batch) for batch in whole] == [rows.step_rows(step, n_steps) for step in range(n_steps)]
    held = [] if not len(rows.held_out) else rows.held_out.take(None).x[:, 0].long().tolist()
    assert held == np.flatnonzero(drawn < 0.2).tolist()
    n_workers = min(3, len(shards.blocks))
    parts = [stream(range(worker, len(shards.blocks), n_workers)) for worker in range(n_workers)]
    for step, batch in enumerate(whole):
        assert sorted(batch) == sorted(number for _, own in parts for number in own[step])
    assert sum(len(rows.held_out) for rows, _ in parts) == len(held)


def test_epochs_differ_and_repeat_by_seed():
    blocks = Numbered([50] * 6)
    shards = Shards.deal([50] * 6, 4)

    def epoch(seed, number):
        return numbers(StreamRows(blocks, shards, SplitFractions(), seed=seed, device=CPU).epoch(number, 5, 0.0))

    assert epoch(1, 0) == epoch(1, 0)
    assert epoch(1, 0) != epoch(1, 1)
    assert epoch(1, 0) != epoch(2, 0)
    noisy = list(StreamRows(blocks, shards, SplitFractions(), seed=1, device=CPU).epoch(0, 5, 0.1))
    noise = torch.cat([batch.x for batch in noisy])[:, 1] + 1
    assert 0.08 < noise.std() < 0.12


def test_a_buffer_mixes_blocks_and_stays_small():
    read_so_far = []

    def read(block):
        for chunk in Numbered([1000] * 20, piece_rows=50).read(block):
            read_so_far.append(len(chunk))
            yield chunk

    shard = Shard(range(20), read, 400, np.random.default_rng(0))
    given, most = [], 0
    for _ in range(200):
        given += [int(row) for chunk in shard.take(100) for row in chunk.x[:, 0]]
        most = max(most, sum(read_so_far) - len(given))
    assert most <= 450
    assert sorted(given) == list(range(20_000))
    steps = np.abs(np.diff(given))
    assert np.median(steps) > 50  # not in the order of the file


def test_blocks_are_dealt_evenly():
    shards = Shards.deal([10] * 3 + [1] * 30, 4)
    assert max(shards.rows) - min(shards.rows) <= 10
    assert sorted(block for own in shards.blocks for block in own) == list(range(33))
    assert len(Shards.deal([5, 5], 8).blocks) == 2
    with pytest.raises(RuntimeError, match="as many rows as were counted"):
        list(StreamRows(Numbered([5]), Shards(((0,),), (6,)), SplitFractions(), seed=0, device=CPU).epoch(0, 1, 0.0))


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "tartree-stream"]


def test_what_is_made_ahead_is_bounded_and_ends():
    made = []

    def things():
        for number in range(1000):
            made.append(number)
            yield number

    with closing(prefetch(things(), 3)) as coming:
        assert [next(coming), next(coming)] == [0, 1]
        time.sleep(0.05)
        assert len(made) <= 2 + 3 + 1
    assert not threads()

    def broken():
        yield 1
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(prefetch(broken(), 3))
    assert list(prefetch(iter([]), 3)) == []
    assert not threads()


def tree():
    made = Tree.build(Structure(1), 2, Classes(2), members=2)
    made.reset_parameters([torch.Generator().manual_seed(seed) for seed in (1, 2)])
    return made


def test_a_worker_without_rows_in_a_step_waits_for_the_others():
    """Seven steps of two rows in one shard: the second worker, whose shard has one row, has none in most steps."""
    recipe = Recipe(epochs=3, batch_size=2, jitter=0.0, patience=5)
    fractions = SplitFractions(held_out=0.1)
    blocks = Numbered([20, 1], weighted=True)
    shards = Shards.deal([20, 1], 2).count(blocks.kept(fractions))

    def fit(workers, served):
        made = tree()
        rows = StreamRows(blocks, shards, fractions, seed=0, device=CPU, served=served)
        generator = torch.Generator().manual_seed(0)
        history = train(made, rows, recipe, generator=generator, validation=rows.held_out, workers=workers)
        return made, history

    alone, history = fit(SingleWorker(), None)
    found = together(lambda worker: fit(worker, [worker.rank]))
    for rank in (0, 1):
        for own, other in zip(alone.parameters(), found[rank][0].parameters(), strict=True):
            torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[rank][1]["loss"], history["loss"], rtol=1e-5)
        np.testing.assert_allclose(found[rank][1]["validation_loss"], history["validation_loss"], rtol=1e-5)


def test_a_worker_group_needs_a_stream():
    class Two(SingleWorker):
        size = 2

    from tartree.training import TensorRows

    rows = TensorRows(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(ValueError, match="a worker group must learn from a stream"):
        train(tree(), rows, Recipe(epochs=1), generator=torch.Generator(), workers=Two())
