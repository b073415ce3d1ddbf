"""What a captured step does on a GPU: its kernels, in Triton's interpreter on a CPU, and the whole on a GPU."""

import copy

import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Tree, Values
from tartree.nn.dispatch import is_capturable
from tartree.nn.graph_capture import Captured
from tartree.training import Recipe, TensorRows, train
from tartree.training.adam import Adam, KernelAdam, rate_table
from tartree.training.epochs import CapturedEpochs
from tartree.training.jitter import Jitter
from tartree.training.step import Step

from ..conftest import DEVICE

pytest.importorskip("triton", reason="Triton is not installed")
needs_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")


def build(n_features=3, members=2, output=None, **settings):
    return Tree.build(Structure(2), n_features, output or Classes(3), members=members, **settings).to(DEVICE)


def table(n_rows, n_features=3):
    return torch.randn(n_rows, n_features, device=DEVICE), torch.randint(3, (n_rows,), device=DEVICE)


def assert_same(tree, other, tolerance=1e-5):
    for ours, theirs in zip(tree.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n_tensors", [1, 3, 6])
def test_the_kernel_is_the_same_adam(n_tensors):
    start = [torch.randn(3, 700, device=DEVICE) for _ in range(n_tensors)]
    ours, theirs = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    rates = [0.1 / (t + 1) for t in range(5)]
    optimizers = KernelAdam([(ours[:2], 0.3), (ours[2:], 0.0)]), Adam([(theirs[:2], 0.3), (theirs[2:], 0.0)])
    table = rate_table(rates).to(DEVICE)
    for t, rate in enumerate(rates):
        for parameters, optimizer, step_rate in zip((ours, theirs), optimizers, (table[t], rate), strict=True):
            torch.manual_seed(t)
            sum((p * torch.randn(p.shape).to(p)).square().sum() for p in parameters).backward()
            optimizer.step(step_rate)
            optimizer.zero_grad()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("output", [Classes(3), Values(2)], ids=str)
def test_a_step_gathers_its_rows_and_keeps_the_books(output, weighted):
    recipe = Recipe(epochs=2, batch_size=16, jitter=0.0)
    tree = build(output=output)
    other = copy.deepcopy(tree)
    x, target = table(44)
    target = target if isinstance(output, Classes) else torch.randn(44, 2, device=DEVICE)
    weight = torch.rand(2, 44, device=DEVICE) if weighted else None
    rows = TensorRows(x, target, weight)
    epochs = CapturedEpochs(tree, rows, recipe)
    assert (epochs.size, epochs.n_batches, epochs.last) == (16, 3, 12)
    step = Step(other, recipe, Jitter(0.0), len(rows), 3)
    for epoch in range(2):
        epochs._shuffle()
        assert sorted(epochs.order.tolist()) == list(range(44))
        total = 0
        for i, (first, size) in enumerate([(0, 16), (16, 16), (32, 12)]):
            epochs._take(size)
            loss = step(rows.take(epochs.order[first : first + size].cpu()), recipe.rate((epoch * 3 + i) / 6))
            total = total + loss * size / 44
        torch.testing.assert_close(epochs.losses[epoch], total, rtol=1e-5, atol=1e-5)
    assert epochs.clock.item() == 6
    assert_same(tree, other)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("settings", [{}, {"leaf_layers": 0}, {"leaf_layers": 2, "dropout": 0.2}], ids=str)
@pytest.mark.parametrize("n_rows", [30, 100])
def test_replays_do_what_steps_do(settings, n_rows):
    recipe = Recipe(epochs=6, batch_size=40, jitter=0.0 if n_rows == 30 else 0.1)
    start = build(**settings)
    rows = TensorRows(*table(n_rows))
    trees = []
    for capture in (True, False):
        tree = copy.deepcopy(start)
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.manual_seed(0)
            epochs = CapturedEpochs(tree, rows, recipe)
            if not capture:
                for run in (epochs.shuffle, *epochs.steps.values()):
                    run.calls = 10**6
            for number in range(recipe.epochs):
                epochs.run(number)
            torch.cuda.synchronize()
        assert all((run.graph is not None) is capture for run in epochs.steps.values())
        trees.append(tree)
    if not settings.get("dropout") and n_rows == 30:  # other random numbers are drawn from in another order
        assert_same(*trees, tolerance=1e-3)
    assert all(torch.isfinite(p).all() for tree in trees for p in tree.parameters())


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_learns_what_a_cpu_learns():
    x, target = table(60)
    recipe = Recipe(epochs=20, jitter=0.0)
    tree = build()
    other = copy.deepcopy(tree).cpu()
    ours = train(tree, TensorRows(x, target), recipe, generator=torch.Generator().manual_seed(0))
    theirs = train(other, TensorRows(x.cpu(), target.cpu()), recipe, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours["loss"], theirs["loss"], rtol=1e-3, atol=1e-3)


class Curious(torch.nn.Module):
    """A decision that looks at its numbers on the host, and so waits for the GPU."""

    def forward(self, x):
        assert x.sum().item() < 1e9
        return torch.zeros(1, len(x), 3, device=x.device)


def test_foreign_modules_are_captured_only_where_they_say_so():
    class Careful(Curious):
        capturable = True

    def with_decision(module):
        return Tree.build(Structure(2), 3, Classes(3), decision=lambda *_: module)

    assert is_capturable(build())
    assert is_capturable(build(branching="sigsoftmax", leaf_layers=2, decision_layers=2))
    assert not is_capturable(build(branching=lambda logits, axis: torch.softmax(logits, axis)))
    assert not is_capturable(with_decision(Curious()))
    assert is_capturable(with_decision(Careful()))
    watched = build()
    watched.leaf.register_forward_hook(lambda *_: None)  # a replay would not call it
    assert not is_capturable(watched)
    history = train(
        with_decision(Curious()).to(DEVICE),
        TensorRows(*table(30)),
        Recipe(epochs=9),
        generator=torch.Generator().manual_seed(0),
    )
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.gpu
@needs_gpu
def test_a_function_is_captured_once():
    counter, calls = torch.zeros(1, device=DEVICE), []

    def function():
        calls.append(1)
        counter.add_(1)

    with torch.cuda.stream(torch.cuda.Stream()):
        run = Captured(function)
        for _ in range(10):
            run()
        torch.cuda.synchronize()
    assert (counter.item(), len(calls)) == (10, 3)
