"""Only products are rounded: what comes after them is in single precision, whatever the recipe says."""

import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Gaussian, Tree, Values
from tartree.training import Recipe, TensorRows, train
from tartree.training.batches import Batch
from tartree.training.loss_gradient import write_gradient
from tartree.training.step import precision

CPU = torch.device("cpu")
OUTPUTS = [Classes(3), Values(2), Gaussian(2)]
# The way without autograd, and those with it.
RECIPES = [
    (Structure(4), {}),
    (Structure(3, 3, 2), {}),
    (Structure(4), {"loss": "mixture"}),
    (Structure(4), {"balance": 0.1}),
]


def learnt_from(structure, output, leaf_layers, recipe):
    """Loss and gradients of a tree whose products are exact in bfloat16: quarters, and few of them."""
    torch.manual_seed(0)
    tree = Tree.build(structure, 3, output, leaf_layers=leaf_layers, hidden=4, members=2)
    with torch.no_grad():
        for parameter in tree.parameters():
            parameter.copy_(torch.randint(-4, 5, parameter.shape) / 4)
    x = torch.randint(-1, 2, (50, 3)).float()
    target = torch.randint(3, (50,)) if isinstance(output, Classes) else torch.randn(50, 2)
    with precision(recipe, CPU):
        loss = write_gradient(tree, x, Batch(x, target, torch.rand(50)), recipe)
    return loss, {name: parameter.grad for name, parameter in tree.named_parameters()}


@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("output", OUTPUTS, ids=str)
@pytest.mark.parametrize(("structure", "settings"), RECIPES, ids=str)
def test_what_comes_after_products_is_single(structure, settings, output, leaf_layers):
    found, gradients = learnt_from(structure, output, leaf_layers, Recipe(precision="bfloat16", **settings))
    wanted, wanted_gradients = learnt_from(structure, output, leaf_layers, Recipe(**settings))
    assert found.dtype == torch.float32
    if leaf_layers == 2:  # hidden units are not quarters
        torch.testing.assert_close(found, wanted, rtol=2e-2, atol=0)
        return
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)
    without_autograd = structure.is_binary and not settings
    for name, gradient in gradients.items():
        # On the way back there are products again, of rounded gradients; but these two are beside them.
        beside = name == "leaf.values" or (without_autograd and name.startswith("decision.mlp.biases"))
        size = wanted_gradients[name].abs().max()
        tolerance = 1e-5 if beside else 3e-2
        torch.testing.assert_close(gradient / size, wanted_gradients[name] / size, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["single", "tf32", "bfloat16"])
@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_every_precision_learns(output, leaf_layers, kind):
    torch.manual_seed(0)
    tree = Tree.build(Structure(3), 3, output, leaf_layers=leaf_layers, hidden=8)
    x = torch.randn(80, 3)
    target = (x[:, 0] > 0).long() if isinstance(output, Classes) else x[:, :2]
    recipe = Recipe(epochs=15, precision=kind, jitter=0.0)
    history = train(tree, TensorRows(x, target), recipe, generator=torch.Generator().manual_seed(0))
    assert history["loss"][-1] < 0.9 * history["loss"][0]
    assert all(parameter.dtype == torch.float32 for parameter in tree.parameters())


def newer_name(value):
    torch.backends.cuda.matmul.fp32_precision = value


def older_name(value):
    torch.backends.cuda.matmul.allow_tf32 = value


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch has the older name only")
@pytest.mark.parametrize(
    ("name", "value"),
    [(newer_name, "none"), (newer_name, "ieee"), (newer_name, "tf32"), (older_name, False), (older_name, True)],
)
def test_the_recipe_decides_and_leaves_no_trace(name, value):
    matmul = torch.backends.cuda.matmul
    name(value)
    before = matmul.fp32_precision
    try:
        for kind, inside in (("single", "ieee"), ("tf32", "tf32")):
            with precision(Recipe(precision=kind), torch.device("cuda")):
                assert matmul.fp32_precision == inside
                assert matmul.allow_tf32 == (kind == "tf32")  # which fails where both names disagree
            assert matmul.fp32_precision == before
            if name is older_name:
                assert matmul.allow_tf32 == value
            test_every_precision_learns(Classes(2), 0, kind)
            assert matmul.fp32_precision == before
    finally:
        older_name(False)
        newer_name("none")
