"""A training step holds nothing that a CUDA graph cannot: found out on the pretend device, without a GPU."""

import pytest
import torch

from tartree import Structure
from tartree.nn import (
    ACTIVATIONS,
    Axis,
    Classes,
    Conv,
    Gaussian,
    Layered,
    PathLeaf,
    Pieces,
    Predictor,
    Soft,
    SparseDecision,
    Subspace,
    Tree,
    Values,
)
from tartree.nn.dispatch import is_capturable
from tartree.nn.graph_capture import EAGER_CALLS
from tartree.ops.index_tables import kept_on_device
from tartree.training import MemberRows, Recipe, TensorRows
from tartree.training.epochs import jitter_of
from tartree.training.held_out import HeldOutEvaluation
from tartree.training.step import Step

from ..conftest import IRREGULAR
from ..pretend_device import capturing, pretend_device

N_ROWS, N_FEATURES, MEMBERS = 12, 9, 2
OUTPUTS = {"classes": Classes(3), "two classes": Classes(2), "values": Values(2), "Gaussian": Gaussian(2)}
TREES = {
    "linear": {},
    "no decisions": {"decision_layers": 0},
    "perceptron decisions": {"decision_layers": 2, "hidden": 4, "dropout": 0.2},
    "decisions that share units": {"decision_layers": 2, "hidden": 4, "share": "layer"},
    "constant leaves": {"leaf_layers": 0},
    "perceptron leaves": {"leaf_layers": 3, "hidden": 4, "dropout": 0.2},
    "pieces": {"leaf": Pieces(layers=2, hidden=4, pieces=3, mixed=True)},
    "axis": {"decision": Axis()},
    "soft": {"decision": Soft()},
    "subspace": {"decision": Subspace(layers=2, hidden=3)},
    "layered": {"decision": Layered()},
    "convolutions": {"decision": Conv(shape=(1, 3, 3), channels=2, width=4)},
    "readable": {
        "decision": lambda structure, n, members: SparseDecision(
            structure, n, columns=range(n), most=2, members=members
        ),
        "leaf": lambda structure, n, numbers, members: PathLeaf(structure, n, numbers, most=3, members=members),
    },
    "temperature": {"temperature": 2.0},
    "learned temperature": {"temperature": "learned"},
}
CAPTURED_ACTIVATIONS = [name for name, activation in ACTIVATIONS.items() if activation.is_capturable]


@pytest.fixture(autouse=True)
def device():
    with pretend_device() as found:
        yield found


def draw_target(output, *shape):
    if isinstance(output, Classes):
        return torch.randint(output.n_targets, shape)
    return torch.randn(*shape, output.n_targets)


def check_step(tree, rows, recipe):
    """Steps as `CapturedEpochs` takes them: some to begin with, then one that is captured."""
    assert is_capturable(tree)
    tree.train()
    step = Step(tree, recipe, jitter_of(recipe, rows), len(rows), n_batches=1)
    index = torch.arange(8, device=rows.x.device)

    def take():
        return step(rows.take(index), 0.01)

    for _ in range(EAGER_CALLS):
        take()
    with capturing():
        loss = take()
    assert torch.isfinite(loss.cpu()).all()


def rows_of(output, device, *, weighted=False, own=False):
    x, target = torch.randn(N_ROWS, N_FEATURES), draw_target(output, N_ROWS)
    x[:, 0] = torch.arange(N_ROWS) % 2  # an indicator, as of a category
    weight = torch.rand(N_ROWS) if weighted else None
    rows = TensorRows(*(None if part is None else part.to(device) for part in (x, target, weight)))
    if not own:
        return rows
    return MemberRows.gather(rows, [torch.arange(11), torch.arange(2, 12)])  # one is filled up


@pytest.mark.parametrize("settings", TREES.values(), ids=TREES)
@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_every_tree(output, settings, device):
    tree = Tree.build(Structure(2), N_FEATURES, output, members=MEMBERS, **settings).to(device)
    check_step(tree, rows_of(output, device), Recipe(epochs=1, sparsity=0.25))


@pytest.mark.parametrize("own", [False, True], ids=["shared rows", "own rows"])
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("settings", [{"jitter": 0.0}, {"jitter": 0.5}, {"balance": 0.1}, {"loss": "mixture"}], ids=str)
@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_every_loss(output, settings, weighted, own, device):
    tree = Tree.build(Structure(2), N_FEATURES, output, members=MEMBERS).to(device)
    check_step(tree, rows_of(output, device, weighted=weighted, own=own), Recipe(epochs=1, **settings))


@pytest.mark.parametrize("activation", CAPTURED_ACTIVATIONS)
@pytest.mark.parametrize("structure", [Structure(0), Structure(3), Structure(2, 3, 2), *IRREGULAR.values()], ids=str)
@pytest.mark.parametrize("layers", [1, 2])
def test_every_structure(structure, activation, layers, device):
    output = Classes(3)
    tree = Tree.build(structure, N_FEATURES, output, branching=activation, decision_layers=layers, hidden=4, members=2)
    check_step(tree.to(device), rows_of(output, device), Recipe(epochs=1, balance=0.1))


@pytest.mark.parametrize("selection", ["multi", "single"])
@pytest.mark.parametrize("own", [False, True], ids=["shared rows", "own rows"])
@pytest.mark.parametrize("settings", TREES.values(), ids=TREES)
@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
@torch.no_grad()
def test_evaluation_and_prediction(output, settings, own, selection, device):
    """What `HeldOutEvaluation` and `Predictor` capture."""
    if own and settings.get("decision") in (TREES["layered"]["decision"], TREES["convolutions"]["decision"]):
        pytest.skip("a network for all members has one table")
    tree = Tree.build(Structure(2), N_FEATURES, output, members=MEMBERS, **settings).to(device).eval()
    rows = rows_of(output, device, weighted=True, own=own)
    evaluation = HeldOutEvaluation(tree, rows, selection, batch_size=8)
    batch = rows.take(None)
    predictor = Predictor(tree, batch.x, selection)
    for _ in range(EAGER_CALLS):
        evaluation._sums(batch)
        predictor()
    with capturing():
        evaluation._sums(batch)
        predictor()


def test_tables_stay_where_a_graph_has_seen_them(device):
    """A replay reads them at the address that they had, however many other tables have come since."""

    @kept_on_device
    def numbers(count, device):
        return torch.arange(count, device=device)

    first = numbers(1, device), numbers(1, torch.device("cpu"))
    for count in range(2, 100):
        numbers(count, device), numbers(count, torch.device("cpu"))
    assert numbers(1, device) is first[0]
    assert numbers(1, torch.device("cpu")) is not first[1]  # the host needs no more than the recent ones


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).any()),
        lambda x: x + torch.tensor(1.0, device=x.device),
        lambda x: x + torch.ones(4).to(x.device),
        lambda x: x.cpu(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x[torch.tensor([0, 1])],
        lambda x: torch.where(x > 0, torch.tensor(1.0), x),
    ],
)
def test_the_guard_sees_what_a_graph_cannot_hold(forbidden, device):
    x = torch.randn(4, device=device)
    forbidden(x)
    with capturing(), pytest.raises(RuntimeError, match="captur"):
        forbidden(x)
