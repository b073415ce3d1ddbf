"""Buffers that are used again must never be used by two at a time."""

import gc

import pytest
import torch

from tartree import Structure, ops
from tartree.nn import Classes, Tree
from tartree.ops import scratch
from tartree.training import Recipe, TensorRows, train

STRUCTURE = Structure(9)


@pytest.fixture(autouse=True)
def _every_buffer_is_large(monkeypatch):
    monkeypatch.setattr(scratch, "SMALLEST", 1)
    gc.collect()
    scratch.release()
    yield
    scratch.release()


def held():
    """Bytes that are kept and not lent."""
    return sum(buffer.nbytes for buffer in [*scratch._pool.free, *scratch._pool.returned])


def outcome(logits, backend="native"):
    arrival = ops.arrival(logits, STRUCTURE, backend=backend)
    return (arrival * torch.arange(STRUCTURE.n_leaves)).sum()


def gradients(count, backend):
    torch.manual_seed(0)
    leaves = [torch.randn(3, STRUCTURE.n_logits, dtype=torch.float64, requires_grad=True) for _ in range(count)]
    return leaves, [outcome(z, backend) for z in leaves]


def test_several_graphs_alive_at_once():
    _, wanted = gradients(4, "reference")
    leaves, got = gradients(4, "native")
    references, _ = gradients(4, "reference")
    sum(got).backward()
    sum(outcome(z, "reference") for z in references).backward()
    for z, w, ours, theirs in zip(leaves, references, got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(z.grad, w.grad)


def test_backward_twice_through_a_kept_graph():
    logits = torch.randn(3, STRUCTURE.n_logits, dtype=torch.float64, requires_grad=True)
    value = outcome(logits)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    other = torch.randn(3, STRUCTURE.n_logits, dtype=torch.float64, requires_grad=True)
    outcome(other).backward()  # takes a buffer in between
    (second,) = torch.autograd.grad(value, logits)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_a_buffer_is_used_again_once_its_graph_is_gone():
    logits = torch.randn(3, STRUCTURE.n_logits, requires_grad=True)
    for _ in range(5):
        outcome(logits).backward()
        gc.collect()
    assert len(scratch._pool.free) + len(scratch._pool.returned) == 1


def lend(*sizes):
    """Borrow all at once, and return them."""
    leases = [scratch.borrow((size,), torch.zeros(1))[1] for size in sizes]
    del leases


def test_no_more_is_held_than_was_lent_at_once():
    for size in range(1000, 100_000, 500):
        lend(size, size)
        assert held() <= 2 * 4 * size * 9 / 8  # sizes are rounded up by an eighth at most
    lend(*range(1000, 50_000, 1000))
    assert held() > 4 * 1000 * 1000
    lend(300)
    assert held() > 4 * 1000 * 1000  # the next step may need it again
    for _ in range(2 * scratch.LATELY):
        lend(300, 300)
    assert held() == 2 * 4 * 320


def test_sizes_that_differ_a_little_share_a_buffer():
    one, lease = scratch.borrow((3, 1021), torch.zeros(1))
    address = one.data_ptr()
    del one, lease
    other, _ = scratch.borrow((1022, 3), torch.zeros(1))
    assert other.data_ptr() == address
    assert other.shape == (1022, 3)
    assert other.is_contiguous()


def test_another_kind_of_number_is_another_buffer():
    lend(1000)
    other, _ = scratch.borrow((1000,), torch.zeros(1, dtype=torch.float64))
    assert other.dtype == torch.float64


@pytest.mark.parametrize("shape", [(), (4,), (2, 5)], ids=str)
def test_predictions_hold_nothing(shape):
    logits = 20 * torch.randn(*shape, STRUCTURE.n_logits, dtype=torch.float64)
    with torch.no_grad():
        found = ops.arrival(logits.requires_grad_(), STRUCTURE)
    assert held() == scratch._pool.lent == 0
    wanted = ops.arrival(logits.detach(), STRUCTURE, backend="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)  # also where nearly nothing arrives


@pytest.mark.parametrize("loss", ["expected", "mixture"])
def test_nothing_is_held_after_a_training(loss):
    tree = Tree.build(STRUCTURE, 3, Classes(2), leaf_layers=0)
    rows = TensorRows(torch.randn(50, 3), torch.randint(2, (50,)))
    most = []
    train(
        tree, rows, Recipe(epochs=2, loss=loss), generator=torch.Generator(), callbacks=[lambda _: most.append(held())]
    )
    assert max(most) > 0
    assert held() == scratch._pool.lent == 0
