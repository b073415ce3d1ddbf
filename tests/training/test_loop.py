import _thread
from dataclasses import replace

import numpy as np
import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Tree
from tartree.training import RECIPES, LazyRows, Recipe, TensorRows, loop, train
from tartree.training.epochs import CapturedEpochs, EagerEpochs

from ..conftest import DEVICE

FAST = Recipe(epochs=20, jitter=0.0)


def problem(rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 3, generator=generator)
    return x, (x[:, 0] * x[:, 1] > 0).long()


def tree(members=1, seeds=None, leaf_layers=1, **settings):
    made = Tree.build(Structure(2), 3, Classes(2), members=members, leaf_layers=leaf_layers, **settings)
    made.reset_parameters([torch.Generator().manual_seed(s) for s in (seeds or range(members))])
    return made


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def parameters(made):
    return [p.detach().clone() for p in made.parameters()]


def test_it_learns():
    x, y = problem()
    made = tree()
    recipe = replace(FAST, epochs=150, decision_decay=0.0, learning_rate=0.1)
    history = train(made, TensorRows(x, y), recipe, generator=generator())
    assert len(history) == 150
    assert history["loss"].shape == (150, 1)
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    assert (made.predict(x)[0].argmax(-1) == y).float().mean() > 0.9
    assert np.all(np.diff(history["seconds"]) > 0)
    assert history["learning_rate"][0] > history["learning_rate"][-1] > 0


@pytest.mark.parametrize("batch_size", [16, 1024])
@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_the_same_seed_gives_the_same_bits(batch_size, jitter):
    x, y = problem()
    results = []
    for _ in range(2):
        made = tree(members=2, dropout=0.2, leaf_layers=2)
        train(made, TensorRows(x, y), replace(FAST, batch_size=batch_size, jitter=jitter), generator=generator(3))
        results.append(parameters(made))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("batch_size", [16, 1024])
def test_a_member_trains_as_it_would_alone(batch_size):
    x, y = problem()
    recipe = replace(FAST, batch_size=batch_size, jitter=0.1)
    fleet = tree(members=3, seeds=[4, 5, 6]).double()
    rows = TensorRows(x.double(), y)
    together = train(fleet, rows, recipe, generator=generator(), validation=rows)
    alone = tree(seeds=[5]).double()
    by_itself = train(alone, rows, recipe, generator=generator(), validation=rows)
    for mine, theirs in zip(parameters(alone), parameters(fleet), strict=True):
        torch.testing.assert_close(mine[0], theirs[1])
    np.testing.assert_allclose(together["validation_loss"][:, 1], by_itself["validation_loss"][:, 0], rtol=1e-6)


def test_folds_are_members_with_zero_weights():
    x, y = problem()
    weight = torch.ones(2, len(y), dtype=torch.float64)
    weight[0, :20] = 0
    weight[1, 40:] = 0
    fleet = tree(members=2, seeds=[1, 1]).double()
    train(fleet, TensorRows(x.double(), y, weight), FAST, generator=generator())
    alone = tree(seeds=[1]).double()
    train(alone, TensorRows(x[20:].double(), y[20:]), FAST, generator=generator())
    for mine, theirs in zip(parameters(alone), parameters(fleet), strict=True):
        torch.testing.assert_close(mine[0], theirs[0])


def test_early_stopping_keeps_the_best_weights_of_each_member():
    x, y = problem(rows=200)
    recipe = Recipe(epochs=300, jitter=0.0, decision_decay=0.0, leaf_decay=0.0, learning_rate=0.1, patience=10)
    made = tree(members=4)
    held = TensorRows(x[100:], torch.randint(2, (100,)))  # noise: the best loss comes early
    history = train(made, TensorRows(x[:100], y[:100]), recipe, generator=generator(), validation=held)
    losses = history["validation_loss"]
    assert len(history) < 300
    for member in range(4):
        # Up to the epoch in which a member ran out of patience, its best epoch is the best of all.
        best = history.best_epoch[member] - 1
        assert best == losses[: best + recipe.patience + 1, member].argmin()
    from tartree import losses as loss_functions

    with torch.no_grad():
        now = loss_functions.mixture(made(held.x), held.target, made.output)
    np.testing.assert_allclose(now.numpy(), losses[history.best_epoch - 1, range(4)], rtol=1e-5)


def test_validation_score_is_the_accuracy_of_each_member():
    x, y = problem()
    made = tree(members=2)
    history = train(made, TensorRows(x, y), FAST, generator=generator(), validation=TensorRows(x[:30], y[:30]))
    best = history.best_epoch - 1
    accuracy = (made.predict(x[:30]).argmax(-1) == y[:30]).double().mean(-1)
    np.testing.assert_allclose(history["validation_score"][best, range(2)], accuracy)


def test_callbacks_see_each_epoch_and_can_stop():
    x, y = problem()
    seen = []

    def stop(epoch):
        seen.append((epoch.number, epoch.epochs))
        return epoch.number == 3

    history = train(tree(), TensorRows(x, y), FAST, generator=generator(), callbacks=[stop, lambda e: None])
    assert seen == [(1, 20), (2, 20), (3, 20)]
    assert len(history) == 3


@pytest.mark.parametrize("validated", [False, True])
def test_an_interrupt_keeps_the_weights_and_says_so(validated):
    x, y = problem()
    rows = TensorRows(x, y)

    def interrupt(epoch):
        if epoch.number == 5:
            _thread.interrupt_main()  # what Ctrl-C does

    made = tree()
    with pytest.warns(UserWarning, match=r"interrupted after \d+ of 20 epochs; the (best|last) weights"):
        history = train(
            made, rows, FAST, generator=generator(), validation=rows if validated else None, callbacks=[interrupt]
        )
    assert history.interrupted
    assert 5 <= len(history) < 20
    # The same run, ended by itself after the epoch whose weights should have been kept.
    end = int(history.best_epoch[0]) if validated else len(history)
    again = tree()
    train(again, rows, FAST, generator=generator(), callbacks=[lambda epoch: epoch.number == end])
    for kept, wanted in zip(parameters(made), parameters(again), strict=True):
        torch.testing.assert_close(kept, wanted, rtol=0, atol=1e-6 if validated else 0.05)


class Waiting(CapturedEpochs):
    """Epochs whose losses are looked at in groups, as on a GPU."""

    def __init__(self, *arguments):
        self.eager = EagerEpochs(*arguments)
        self.step = self.eager.step

    def run(self, number):
        return self.eager.run(number)


@pytest.mark.parametrize("kind", [EagerEpochs, Waiting])
@pytest.mark.parametrize("end", [20, 45])
def test_an_interrupt_with_nobody_listening(monkeypatch, kind, end):
    x, y = problem()
    recipe = replace(FAST, epochs=100)
    again = tree()
    wanted = train(
        again, TensorRows(x, y), recipe, generator=generator(), callbacks=[lambda epoch: epoch.number == end]
    )

    class Interrupted(kind):
        def run(self, number):
            if number == end:
                raise KeyboardInterrupt
            return super().run(number)

    monkeypatch.setattr(loop, "make_epochs", lambda *arguments, **_: Interrupted(*arguments[:4]))
    made = tree()
    with pytest.warns(UserWarning, match=f"interrupted after {end} of 100 epochs; the last weights"):
        history = train(made, TensorRows(x, y), recipe, generator=generator())
    np.testing.assert_array_equal(history["loss"], wanted["loss"])
    assert all(torch.equal(a, b) for a, b in zip(parameters(made), parameters(again), strict=True))


def test_a_loss_that_is_lost_is_found_at_once(monkeypatch):
    x, y = problem()
    ran, run = [], EagerEpochs.run

    def diverging(self, number):
        ran.append(number)
        return run(self, number) * (float("nan") if number == 4 else 1)

    monkeypatch.setattr(EagerEpochs, "run", diverging)
    with pytest.raises(FloatingPointError, match="in epoch 5; lower learning_rate"):
        train(tree(), TensorRows(x, y), FAST, generator=generator())
    assert len(ran) == 5


def test_lazy_rows_equal_tensors():
    x, y = problem()
    recipe = replace(FAST, batch_size=16)
    in_memory, lazy = tree().double(), tree().double()
    weight = torch.rand(len(y), dtype=torch.float64)
    train(in_memory, TensorRows(x.double(), y, weight), recipe, generator=generator())
    train(lazy, LazyRows(lambda index: x[index].double(), y, weight), recipe, generator=generator())
    for mine, theirs in zip(parameters(lazy), parameters(in_memory), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_balance_penalty_evens_the_splits():
    x, y = problem(rows=200)

    def split(weight):
        made = tree(seeds=[2])
        recipe = Recipe(epochs=100, jitter=0.0, balance=weight, decision_decay=0.0)
        train(made, TensorRows(x, y), recipe, generator=generator())
        shares = made.arrivals(x)[-1].mean(1)
        return (shares - 0.25).abs().max().item()

    assert split(1.0) < split(0.0)


def test_the_recipe_of_the_paper():
    paper = RECIPES["paper"]
    assert (paper.epochs, paper.batch_size, paper.learning_rate, paper.schedule) == (200, 1024, 0.005, "constant")
    assert paper.decision_decay == paper.leaf_decay == paper.jitter == paper.balance == 0
    assert paper.loss == "expected"


def test_divergence_is_an_error_not_a_model():
    x, y = problem()
    made = tree()
    with torch.no_grad():
        for p in made.leaf.parameters():
            p.fill_(torch.inf)
    with pytest.raises((FloatingPointError, ValueError), match="finite"):
        train(made, TensorRows(x, y), FAST, generator=generator())


@pytest.mark.parametrize("terminal", [False, True])
def test_a_progress_bar_leaves_no_trace_when_off(capsys, monkeypatch, terminal):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    x, y = problem()
    train(tree(), TensorRows(x, y), FAST, generator=generator(), verbose=0)
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == ""
    train(tree(), TensorRows(x, y), FAST, generator=generator(), verbose=1)
    loud = capsys.readouterr()
    assert loud.out == ""
    assert "loss" in loud.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be an integer of at least 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must .* got 2.5"),
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
        ({"leaf_decay": -1}, "leaf_decay must .* got -1"),
        ({"jitter": float("nan")}, "jitter must .* got nan"),
        ({"schedule": "linear"}, "schedule must be one of cosine, constant, got 'linear'"),
        ({"loss": "hinge"}, "loss must .* got 'hinge'"),
        ({"validation_fraction": 1.0}, "validation_fraction must .* got 1.0"),
    ],
)
def test_bad_recipes_name_the_value(changes, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**changes)


@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("part", ["decision", "branching", "leaf"])
def test_forward_hooks_are_called(part, leaf_layers):
    """By autograd, which calls every part, in place of the passes that do not; with the same outcome."""
    x, y = (data.to(DEVICE) for data in problem())
    plain, watched = (tree(leaf_layers=leaf_layers, hidden=5).to(DEVICE) for _ in range(2))
    called = []
    getattr(watched, part).register_forward_hook(lambda *_: called.append(part))
    for made in (plain, watched):
        train(made, TensorRows(x, y), replace(FAST, epochs=5), generator=generator())
    assert len(called) == 5
    for own, other in zip(plain.parameters(), watched.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)
