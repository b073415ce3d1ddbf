"""Certificates are true: no row changes by more than the bound."""

import os

import numpy as np
import pytest
import torch

from tartree import Structure, TartClassifier, explain
from tartree.explain.simplification.distillation import predict_rows
from tartree.explain.verification.boxes import Boxes, data_box
from tartree.explain.verification.certificates import Certificate, bound_change
from tartree.nn import Classes, Tree
from tartree.nn.subtree import shrink_structure, shrink_tree
from tests.conftest import IRREGULAR
from tests.explain.models import KINDS, double_tree, encode, fit, prune

ROWS = 10_000

#: All of them, which takes minutes, where TARTREE_ALL_SEEDS is set.
SEEDS = range(50) if os.environ.get("TARTREE_ALL_SEEDS") else [0, 3, 6, 7, 12, 25]


def worst_inside(before, after, x, seed):
    """The largest change on random rows of the box, its corners and edges among them."""
    box = data_box(x)
    generator = torch.Generator().manual_seed(seed)
    way = torch.rand(ROWS, x.shape[1], generator=generator, dtype=torch.float64)
    way[: ROWS // 2] = way[: ROWS // 2].round()
    way[: ROWS // 4] = torch.where(way[: ROWS // 4] == 0, way[ROWS // 2 : ROWS // 2 + ROWS // 4], way[: ROWS // 4])
    inside = box.low + way * (box.high - box.low)
    trees = [double_tree(model) for model in (before, after)]
    said = [predict_rows(tree, inside, before.selection) for tree in trees]
    return float((said[0] - said[1]).abs().max())


def random_model(seed):
    """A model of any kind with random weights, and some way to make it smaller."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    task = ["classes", "two classes", "values"][seed // len(KINDS) % 3]
    model, X = fit(kind, task, seed=seed, depth=0 if kind == "one leaf" else int(rng.integers(1, 3)))
    with torch.no_grad():  # from flat to steep
        for parameter in model.tree_.parameters():
            parameter *= float(np.exp(rng.uniform(-2, 1)))
    way = rng.choice(["leaves", "terms", "tolerance", "pruned"])
    return model, X, way, rng


@pytest.mark.parametrize("seed", SEEDS)
def test_certificates_are_true(seed):
    model, X, way, rng = random_model(seed)
    n_leaves = model.get_n_leaves()
    if way == "pruned" and n_leaves > 1:  # nodes removed, nothing refitted
        gone = rng.choice(n_leaves, size=int(rng.integers(1, n_leaves)), replace=False)
        tree = double_tree(model)
        origin = shrink_structure(tree.structure, [(tree.structure.depth, int(u)) for u in gone])
        small = prune(model, [int(u) for u in gone])
        x = encode(model, X)
        bound = bound_change(tree, double_tree(small), origin, data_box(x), model.selection, max_boxes=128)
    else:
        linear = KINDS[list(KINDS)[seed % len(KINDS)]].get("leaf_layers", 1) == 1
        limits = {
            "leaves": {"max_leaves": max(1, n_leaves // 2)},
            "terms": {"max_terms": 2} if linear else {"max_leaves": 1},
        }.get(way, {"tolerance": 0.05})
        small = explain.simplify(model, X, **limits, max_boxes=128)
        bound, x = small.certificate_.bound, encode(model, X)
    assert worst_inside(model, small, x, seed) <= bound


@pytest.mark.parametrize(
    "structure",
    [Structure(3, 3, 2), Structure(3, 3, 1), Structure(4, 2, 1), Structure(2, 4, 2), Structure(3)],
    ids=repr,
)
def test_certificates_are_true_where_children_are_shared(structure):
    """Deep enough that several ways lead to the same leaf: nothing is refitted that could hide a wrong pairing."""
    pytest.importorskip("entmax")
    box = Boxes(torch.full((1, 2), -0.2, dtype=torch.float64), torch.full((1, 2), 0.2, dtype=torch.float64))
    for seed in range(15):
        torch.manual_seed(seed)
        activation, layers = ("softmax", "sparsemax")[seed % 2], (1, 1, 0)[seed % 3]
        tree = Tree.build(
            structure, 2, Classes(2), leaf_layers=0, decision_layers=layers, branching=activation
        ).double()
        tree.requires_grad_(False)
        for parameter in tree.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3, 1.0, 4.0)[seed % 3])
        n_gone = int(torch.randint(1, structure.n_leaves, ()))
        gone = [(structure.depth, int(leaf)) for leaf in torch.randperm(structure.n_leaves)[:n_gone]]
        origin = shrink_structure(structure, gone)
        small = shrink_tree(tree, origin).requires_grad_(False)
        bound = bound_change(tree, small, origin, box, "multi", max_boxes=16)
        x = box.low + torch.rand(500, 2, dtype=torch.float64) * (box.high - box.low)
        assert float((predict_rows(tree, x, "multi") - predict_rows(small, x, "multi")).abs().max()) <= bound


def test_a_certificate_that_is_refuted_is_none():
    with pytest.raises(RuntimeError, match="please report"):
        Certificate(0.1, 0.05, 0.0, None, 1, 2, 1, None, None, (0.0,), (1.0,))


@pytest.mark.parametrize(
    "structure", [*IRREGULAR.values(), Structure(3), Structure(2, 3), Structure(3, 3, 2)], ids=repr
)
def test_removal_alone_changes_by_at_most_the_largest_arrivals(structure):
    """Constant decisions, so that largest arrivals are arrivals: the bound is their sum at most, and nearly met."""
    tree = Tree.build(structure, 2, Classes(2), leaf_layers=0).double().requires_grad_(False)
    tree.decision.mlp.weights[0].zero_()
    tree.leaf.values.copy_(20 * torch.eye(2)[torch.arange(structure.n_leaves) % 2])
    x = torch.rand(20, 2, dtype=torch.float64)
    arrival = tree(x).arrival[0, 0]
    gone = [0, structure.n_leaves - 1] if structure.n_leaves > 2 else [0]
    origin = shrink_structure(structure, [(structure.depth, leaf) for leaf in gone])
    small = shrink_tree(tree, origin).requires_grad_(False)
    bound = bound_change(tree, small, origin, data_box(x), "multi", max_boxes=1)
    assert bound <= float(arrival[gone].sum()) + 1e-6
    assert float((predict_rows(tree, x, "multi") - predict_rows(small, x, "multi")).abs().max()) <= bound


def test_nothing_changed_is_nothing_to_bound():
    for kind in ("default", "shared children", "perceptron decisions", "perceptron leaves", "spherical", "members"):
        model, X = fit(kind)
        tree = double_tree(model)
        origin = shrink_structure(tree.structure, [])
        assert bound_change(tree, shrink_tree(tree, origin), origin, data_box(encode(model, X)), "multi") < 1e-6


def test_a_box_without_features():
    X = np.ones((30, 2))
    model = TartClassifier(epochs=5, random_state=0).fit(X, np.arange(30) % 3 > 0)
    assert encode(model, X).shape == (30, 0)
    small = model.simplify(X)
    assert small.certificate_.measured <= small.certificate_.bound < 1e-3
    np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), atol=1e-3)
