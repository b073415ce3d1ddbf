import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from tartree import Structure, TartClassifier
from tartree.search import size_of
from tartree.search.sizes import features_per_condition, longest_path, used_leaves


def test_used_leaves():
    arrived = torch.tensor([[50.0, 49.2, 0.5, 0.3], [25.0, 25.0, 25.0, 25.0]], dtype=torch.float64)
    chosen = torch.tensor([[60.0, 39.0, 1.0, 0.0], [100.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    counted = torch.stack([arrived, chosen])
    assert used_leaves(counted, "multi").tolist() == [[True, True, False, False], [True] * 4]
    assert used_leaves(counted, "single").tolist() == [[True, True, True, False], [True, False, False, False]]
    arrived = torch.tensor([[95.0, 4.5, 0.5]], dtype=torch.float64)
    assert used_leaves(torch.stack([arrived, arrived]), "multi").tolist() == [[True, True, False]]


@pytest.mark.parametrize(
    ("structure", "used", "conditions"),
    [
        (Structure(3), [1, 1, 1, 1, 1, 1, 1, 1], 3),
        (Structure(3), [1, 1, 0, 0, 0, 0, 0, 0], 1),  # two decisions send all the same way
        (Structure(3), [1, 0, 1, 0, 1, 0, 1, 0], 2),
        (Structure(3), [0, 0, 0, 0, 0, 1, 0, 0], 0),
        (Structure(2, 3, 2), [1, 0, 0, 0, 1, 0, 1], 2),
        (Structure(0), [1], 0),
    ],
)
def test_conditions_on_a_path(structure, used, conditions):
    assert longest_path(structure, np.array(used, dtype=bool)) == conditions


def test_features_per_condition():
    X, y = load_iris(return_X_y=True)
    model = TartClassifier(depth=2, epochs=1, random_state=0).fit(X, y)
    with torch.no_grad():
        model.tree_.decision.mlp.weights[0].copy_(
            torch.tensor([[[1.0, 0.0, 0.0, 0.0], [8.0, -1.5, 0.5, 0.0], [1.0, 1.0, 1.0, 1.0]]])  # 80, 95, 100 %
        )
    assert features_per_condition(model.tree_).tolist() == pytest.approx([(1 + 2 + 4) / 3])
    assert size_of(model, X).features == pytest.approx(7 / 3)
    assert size_of(TartClassifier(depth=0, epochs=1).fit(X, y), X).features == 0


def test_an_ensemble_is_as_large_as_its_trees_together():
    X, y = load_iris(return_X_y=True)
    model = TartClassifier(depth=1, members=3, epochs=1, random_state=0).fit(X, y)
    found = size_of(model, X)
    assert found.leaves == 6
    assert found.conditions == 1
    assert found.parameters == model.n_parameters_
