"""The Triton kernels equal the reference: in Triton's interpreter on a CPU, and compiled where there is a GPU."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tartree import Structure, losses, ops
from tartree.nn import Classes, Leaves, Tree, combine, dispatch
from tartree.ops import fused

from ..conftest import DEVICE

pytest.importorskip("triton", reason="Triton is not installed")

ON_GPU = DEVICE == "cuda"
SHAPES = [Structure(1), Structure(3), Structure(5), Structure(2, 3, 3), Structure(3, 3, 2), Structure(4, 2, 1)]
DEEP = [*(Structure(d) for d in (2, 4, 6, 7, 8, 9, 10, 12)), Structure(7, 3, 2), Structure(4, 5, 3), Structure(1, 8)]
# Members, rows, classes, and whether weights and targets are the members' own.
SIZES = [(1, 37, 3, False), (2, 5, 10, True), (1, 6, 20, False)]
LARGE_SIZES = [(3, 1024, 10, False), (2, 70, 2, True)] if ON_GPU else []
# Of deep trees fewer rows, still of several blocks: the reference of 4,096 leaves takes minutes for more.
DEEP_SIZES = [(3, 200, 10, False), (2, 70, 2, True)]


class Case:
    """Random logits and leaves, what the kernels make of them, and what the reference does."""

    def __init__(self, structure, members, batch, n_classes, own, constant, biased, dtype=torch.float32):
        self.structure, self.output = structure, Classes(n_classes)
        leaves = structure.n_leaves

        def draw(*shape):
            return torch.randn(shape, device=DEVICE)

        self.logits = draw(members, structure.n_logits, batch).to(dtype).transpose(-1, -2)
        self.bias = draw(members, structure.n_logits) if biased else None
        if constant:
            self.numbers = draw(members, 1, leaves, n_classes)
        else:
            self.numbers = draw(members, leaves, n_classes, batch).to(dtype).movedim(-1, 1)
        self.numbers_bias = draw(members, leaves, n_classes) if biased and not constant else None
        self.target = torch.randint(n_classes, (members, batch) if own else (batch,), device=DEVICE)
        weight = torch.rand(members if own else 1, batch, device=DEVICE)
        self.share = weight / weight.sum(-1, keepdim=True) if own else None
        self.parts = (self.logits, self.bias, self.numbers, self.numbers_bias)

    def reference(self):
        """In double precision: loss, gradients, probabilities of both selections, and rows whose best leaf is clear."""
        own = [None if x is None else x.double().cpu().requires_grad_() for x in self.parts]
        logits, bias, numbers, numbers_bias = own
        logits = logits if bias is None else logits + bias.unsqueeze(1)
        numbers = numbers if numbers_bias is None else numbers + numbers_bias.unsqueeze(1)
        # Whole transition matrices of many rows and leaves do not fit into memory; native is tested against them.
        fits = logits.shape[0] * logits.shape[1] * self.structure.n_leaves**2 < 2**26
        arrival = ops.arrival(logits, self.structure, backend="reference" if fits else "native")
        weight = None if self.share is None else self.share.double().cpu()
        loss = losses.expected(Leaves(arrival, numbers), self.target.cpu(), self.output, weight)
        gradients = torch.autograd.grad(loss.sum(), [x for x in own if x is not None])
        said = self.output.mean(numbers)
        first, second = arrival.topk(2).values.unbind(-1)  # (members, batch)
        is_clear = first - second > 1e-5 * first
        return loss, gradients, [combine(arrival, said, selection) for selection in ("multi", "single")], is_clear


def cases(shapes, sizes):
    biased = True
    for structure in shapes:
        for members, batch, n_classes, own in sizes:
            for constant in (True, False):
                biased = not biased
                yield structure, members, batch, n_classes, own, constant, biased


def assert_near(got, wanted, tolerance=2e-5):
    wanted = wanted.detach().reshape(got.shape)
    torch.testing.assert_close(
        got.detach().double().cpu(), wanted, rtol=tolerance, atol=tolerance * float(wanted.abs().max())
    )


def check(case, tolerance=2e-5):
    loss, gradients, (multi, single), is_clear = case.reference()
    found = fused.expected_cost(*case.parts, case.target, case.share, case.structure)
    assert_near(found.loss, loss, tolerance)
    for got, wanted in zip([x for x in found[1:] if x is not None], gradients, strict=True):
        assert_near(got, wanted, tolerance)
    assert_near(fused.probabilities(*case.parts, case.structure), multi, tolerance)
    if tolerance < 1e-3:  # a leaf that is barely the best may be another one in less precision
        found_single = fused.probabilities_of_best(*case.parts, case.structure)
        assert is_clear.double().mean() > 0.9
        assert_near(found_single[is_clear.to(found_single.device)], single[is_clear], tolerance)


@pytest.mark.parametrize("arguments", list(cases(SHAPES, SIZES + LARGE_SIZES)), ids=str)
def test_kernels_equal_the_reference(arguments):
    check(Case(*arguments))


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a GPU: the interpreter would take minutes")
@pytest.mark.parametrize("arguments", list(cases(DEEP, SIZES + DEEP_SIZES)), ids=str)
def test_compiled_kernels_equal_the_reference(arguments):
    check(Case(*arguments))


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
@pytest.mark.parametrize("structure", [Structure(6), Structure(3, 3, 2)], ids=str)
def test_half_precision(structure):
    check(Case(structure, 2, 100, 3, False, False, True, torch.bfloat16), tolerance=2e-2)


@pytest.mark.parametrize("structure", SHAPES, ids=str)
def test_arrival_equals_the_reference(structure):
    logits = torch.randn(2, 5, structure.n_logits, device=DEVICE, requires_grad=True)
    weight = torch.randn(2, 5, structure.n_leaves, device=DEVICE)
    found = ops.arrival(logits, structure, backend="fused")
    (gradient,) = torch.autograd.grad((found * weight).sum(), logits)
    exact = logits.detach().double().cpu().requires_grad_()
    wanted = ops.arrival(exact, structure, backend="reference")
    assert_near(found, wanted)
    assert_near(gradient, torch.autograd.grad((wanted * weight.double().cpu()).sum(), exact)[0])
    with pytest.raises(NotImplementedError, match="backend='reference'"):
        torch.autograd.grad(ops.arrival(logits, structure, backend="fused").sum(), logits, create_graph=True)


def test_extreme_logits_stay_finite():
    structure = Structure(4)
    logits = 1e4 * torch.randn(1, 9, structure.n_logits, device=DEVICE)
    numbers = 1e4 * torch.randn(1, 1, structure.n_leaves, 3, device=DEVICE)
    target = torch.randint(3, (9,), device=DEVICE)
    found = fused.expected_cost(logits, None, numbers, None, target, None, structure)
    assert all(x is None or torch.isfinite(x).all() for x in found)
    assert_near(
        fused.probabilities(logits, None, numbers, None, structure).sum(-1), torch.ones(1, 9, dtype=torch.float64)
    )


def test_no_rows():
    structure = Structure(3)
    logits, numbers = torch.zeros(1, 0, 7, device=DEVICE), torch.zeros(1, 1, 8, 3, device=DEVICE)
    assert fused.probabilities(logits, None, numbers, None, structure).shape == (1, 0, 3)
    assert fused.probabilities_of_best(logits, None, numbers, None, structure).shape == (1, 0, 3)


def test_what_the_backend_cannot_do_is_refused():
    with pytest.raises(ValueError, match="leaves only"):
        ops.arrival(torch.zeros(2, 7), Structure(3), layers=True, backend="fused")
    with pytest.raises(ValueError, match="starts from logits"):
        ops.spread(torch.zeros(2, 14), Structure(3), backend="fused")


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
def test_a_tree_predicts_the_same_on_a_gpu(leaf_layers):
    tree = Tree.build(Structure(5), 7, Classes(4), leaf_layers=leaf_layers, members=2).eval()
    x = torch.randn(50, 7)
    with torch.no_grad():
        for selection in ("multi", "single"):
            wanted = tree.double().cpu().predict(x.double(), selection)
            assert_near(tree.float().to(DEVICE).predict(x.to(DEVICE), selection), wanted)


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
@pytest.mark.parametrize("temperature", [0.5, "learned"])
@pytest.mark.parametrize("structure", [Structure(5), Structure(3, 3, 2)], ids=str)
def test_a_temperature_is_heard_on_a_gpu(structure, temperature):
    """Kernels from logits to classes know of no temperature: values and gradients are those of the reference."""
    tree = Tree.build(structure, 7, Classes(4), temperature=temperature, members=2).eval()
    if temperature == "learned":
        nn.init.normal_(tree.branching.log_scale)
    x, target = torch.randn(50, 7), torch.randint(4, (50,))
    exact = copy.deepcopy(tree).double()
    arrival = ops.arrival(exact.branching.scale(exact.decision(x.double())), structure, backend="reference")
    said = exact.leaf(x.double())
    wanted = losses.expected(Leaves(arrival, said), target, exact.output)
    wanted.sum().backward()
    tree, x, target = tree.to(DEVICE), x.to(DEVICE), target.to(DEVICE)
    assert dispatch.gradient_path(tree, x) == "autograd"
    loss = losses.expected(tree(x), target, tree.output)
    loss.sum().backward()
    assert_near(loss, wanted)
    for own, reference in zip(tree.parameters(), exact.parameters(), strict=True):
        assert_near(own.grad, reference.grad)
    with torch.no_grad():
        for selection in ("multi", "single"):
            assert_near(tree.predict(x, selection), combine(arrival, exact.output.mean(said), selection))


def test_kernels_compile_for_a_gpu(tmp_path):
    """Triton's compiler makes machine code of every kernel, also without a GPU and in a home that cannot be written.

    The interpreter is no proof of that. The home is a file, which not even root can write into.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    (tmp_path / "home").touch()
    (tmp_path / "temporary files").mkdir()
    environment |= {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary files")}
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run([sys.executable, "-W", "ignore", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    step = ["gather", "advance", "adam", "forward", "backward"]
    assert done.stdout.split() == ["binary", "finish", "pick", "layered", *step]
    assert not list((tmp_path / "temporary files").iterdir())  # the cache used instead is gone with its process
