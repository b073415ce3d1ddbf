"""How many features say something of their own, and how much noise they get."""

import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Tree
from tartree.training import MemberRows, Recipe, TensorRows
from tartree.training.batches import LazyRows
from tartree.training.epochs import make_epochs
from tartree.training.jitter import CurveFeatures, Jitter
from tartree.training.redundancy import participation, tables_of


def draw(n_rows, n_features):
    return torch.randn(n_rows, n_features, generator=torch.Generator().manual_seed(0))


def test_from_all_alike_to_none_alike():
    x = draw(2000, 8)
    assert participation(x) == pytest.approx(8, abs=0.1)
    assert participation(x[:, :1].expand(-1, 8) * torch.arange(1, 9)) == pytest.approx(1, abs=0.01)
    # Three copies of each of four features, and a constant, which says nothing.
    assert participation(torch.cat([x[:, :4]] * 3 + [torch.ones(2000, 1)], dim=1)) == pytest.approx(4, abs=0.1)
    assert participation(x.mean(1, keepdim=True) * 3 + x / 100) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("shape", [(12, 40), (40, 12)])
def test_chance_correlations_of_few_rows_do_not_count(shape):
    assert participation(draw(*shape)) > 0.7 * shape[1]


def test_nothing_to_compare():
    assert participation(draw(2, 5)) == 5
    assert participation(draw(50, 1)) == 1
    assert participation(torch.ones(9, 3)) == 0


def test_all_kinds_of_rows():
    x, y = draw(300, 6), torch.zeros(300, dtype=torch.int64)
    rows = TensorRows(x, y)
    for one in (rows, LazyRows(lambda index: x[index], y)):
        (found,) = tables_of(one)
        assert torch.equal(found, x)
    first, second = tables_of(MemberRows.gather(rows, [torch.arange(300), torch.arange(100, 150)]))
    assert torch.equal(first, x)
    assert torch.equal(second, x[100:150])  # and not what fills it up
    assert participation(draw(5000, 6)) == participation(draw(5000, 6)[::5])


def test_the_noise_of_a_table_knows_of_its_own_rows_only():
    plain, alike = draw(100, 20), draw(80, 1).expand(-1, 20) + draw(80, 20) / 1000
    x, y = torch.cat([plain, alike]), torch.zeros(180, dtype=torch.int64)
    recipe = Recipe(jitter=0.4, batch_size=1000)

    def noise(rows, members):
        tree = Tree.build(Structure(1), 20, Classes(2), members=members)
        return make_epochs(tree, rows, recipe, torch.Generator()).step.jitter.noise

    tables = MemberRows.gather(TensorRows(x, y), [torch.arange(100), torch.arange(100, 180)], share=2)
    alone = [noise(TensorRows(own, y[: len(own)]), 1) for own in (plain, alike)]
    assert alone[0] > 3 * alone[1]
    own = noise(tables, 4)  # (tables, 1, features)
    assert own.shape == (2, 1, 20)
    assert own[:, 0, 0].tolist() == pytest.approx(alone)
    assert (own == own[..., :1]).all()


def test_indicators_get_no_noise():
    x = torch.cat([draw(100, 3), (draw(100, 2) > 0).float()], dim=1)
    y = torch.zeros(100, dtype=torch.int64)
    recipe = Recipe(jitter=0.4)
    for rows, shape in (
        (TensorRows(x, y), (5,)),
        (MemberRows.gather(TensorRows(x, y), [torch.arange(60), torch.arange(40, 100)]), (2, 1, 5)),
    ):
        tree = Tree.build(Structure(1), 5, Classes(2), members=len(shape) // 2 + 1)
        step = make_epochs(tree, rows, recipe, torch.Generator()).step
        assert step.jitter.noise.shape == shape
        assert (step.jitter.noise[..., :3] > 0).all()
        assert (step.jitter.noise[..., 3:] == 0).all()


def test_each_table_gets_its_own_noise():
    x, y = torch.zeros(2000, 4), torch.zeros(2000, dtype=torch.int64)
    tree = Tree.build(Structure(1), 4, Classes(2), members=2)
    rows = MemberRows.gather(TensorRows(x, y), [torch.arange(1000), torch.arange(1000, 2000)])
    step = make_epochs(tree, rows, Recipe(), torch.Generator()).step
    step.jitter = Jitter(torch.tensor([0.5, 2.0]).view(-1, 1, 1))
    seen = []
    step.learn = lambda x, batch, pace: seen.append(x)
    step(rows.take(None), 0.1, torch.Generator().manual_seed(0))
    assert seen[0].std(dim=(1, 2)).tolist() == pytest.approx([0.5, 2.0], rel=0.05)


def test_alike_features_get_little_noise():
    y = torch.zeros(100, dtype=torch.int64)
    noises = []
    for x in (draw(100, 20), draw(100, 1).expand(-1, 20) + draw(100, 20) / 1000):
        tree = Tree.build(Structure(1), 20, Classes(2))
        epochs = make_epochs(tree, TensorRows(x, y), Recipe(jitter=0.4), torch.Generator())
        noises.append(epochs.step.jitter.noise)
    assert noises[0] > 0.35
    assert noises[1] == pytest.approx(0.4 / 16**0.5, rel=0.01)


def test_the_bins_of_a_curve_follow_the_noise_of_its_value():
    curves = CurveFeatures(
        torch.tensor([0]),
        torch.tensor([0, 0]),
        torch.zeros(2),
        torch.tensor([1.0, 2.0]),
        torch.tensor([-torch.inf, 0.0]),
        torch.tensor([torch.inf, 2.0]),
        torch.tensor([0.0, 1.0]),
    )
    x = curves.of(draw(500, 1))
    y = torch.zeros(500, dtype=torch.int64)
    tables = MemberRows.gather(TensorRows(x, y, curves=curves), [torch.arange(200), torch.arange(200, 500)])
    for rows in (TensorRows(x, y, curves=curves), tables, LazyRows(lambda index: x[index], y, curves=curves)):
        tree = Tree.build(Structure(1), 2, Classes(2), members=2)
        step = make_epochs(tree, rows, Recipe(jitter=0.8), torch.Generator()).step
        noise = torch.as_tensor(step.jitter.noise)
        assert (noise > 0).all()
        assert noise.numel() in (1, 2)  # a level for each table, none for the bin itself
        seen = step.jitter(rows.take(None if rows is tables else torch.arange(500)).x, torch.Generator().manual_seed(0))
        values = seen[..., :1]
        assert torch.allclose(curves.of(values), seen)
        assert not torch.equal(seen, rows.take(None if rows is tables else torch.arange(500)).x)
