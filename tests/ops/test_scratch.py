"""Buffers that are used again must never be used by two at a time."""

import gc

import pytest
import torch

from tartree import Structure, ops
from tartree.ops import scratch

STRUCTURE = Structure(9)


@pytest.fixture(autouse=True)
def _every_buffer_is_large(monkeypatch):
    monkeypatch.setattr(scratch, "SMALLEST", 1)
    scratch._free.clear()
    yield
    scratch._free.clear()


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
    assert sum(len(kept) for kept in scratch._free.values()) == 1


def test_no_more_than_a_few_are_kept():
    leases = [scratch.borrow((1000,), torch.zeros(1))[1] for _ in range(10)]
    del leases
    assert [len(kept) for kept in scratch._free.values()] == [scratch.KEPT]
