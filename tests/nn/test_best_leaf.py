import copy
import gc
import pickle

import pytest
import torch
from torch import nn

from tartree import Structure, losses
from tartree.nn import Classes, Gaussian, Leaves, Tree, Values, best_leaf, combine, dispatch, leaf_search

from ..conftest import IRREGULAR
from ..optional import given, st
from ..test_structure import structures

TREES = [Structure(1), Structure(5), Structure(3, 3), Structure(2, 4), Structure(2, 5), IRREGULAR["pruned binary"]]
TREES += [IRREGULAR["one long path"], IRREGULAR["a chain"], Structure(3, 4).without([(2, 3), (3, 8), (3, 9), (3, 10)])]


@pytest.fixture(autouse=True)
def _inference():
    with torch.no_grad():
        yield


@pytest.fixture(params=["rows", "blocks", "chosen"])
def way(request, monkeypatch):
    """Make every search go one way, or the way it would choose itself."""
    costs = {"rows": (3.0, 1.0, 2.0), "blocks": (3.0, 2.0, 1.0)}
    if request.param in costs:
        usual = dispatch._costs
        monkeypatch.setattr(dispatch, "_costs", lambda s, batch: _forced(usual(s, batch), *costs[request.param]))
        monkeypatch.setattr(best_leaf, "_is_soft", lambda *_: False)
        monkeypatch.setattr(dispatch, "PATIENCE", 1e6)
    return request.param


def _forced(usual, full, alone, blocks):
    return full, alone, blocks if usual[2] < float("inf") else usual[2]


def build(structure, sharpness=1.0, n_features=6, output=None, **settings):
    tree = Tree.build(structure, n_features, output or Classes(3), hidden=5, **settings).double().eval()
    for weight in getattr(tree.decision, "mlp", tree).parameters():
        weight.mul_(sharpness)
    return tree


def check(tree, x):
    """The search finds what argmax finds, unless two arrivals are the same to the last digits."""
    leaf, arrival = best_leaf.best_leaf(tree, x)
    everywhere = tree(x).arrival
    assert leaf.shape == arrival.shape == everywhere.shape[:2]
    assert arrival.dtype == x.dtype
    tolerance = {"rtol": 1e-5, "atol": 0} if x.dtype == torch.float32 else {"rtol": 1e-12, "atol": 0}
    torch.testing.assert_close(arrival, everywhere.amax(-1), **tolerance)
    torch.testing.assert_close(everywhere.gather(-1, leaf.unsqueeze(-1)).squeeze(-1), everywhere.amax(-1), **tolerance)
    two = everywhere.topk(min(2, everywhere.shape[-1]), dim=-1).values
    clear = two[..., 0] > two[..., -1] * (1 + 10 * tolerance["rtol"])
    if everywhere.shape[-1] > 1:
        assert torch.equal(leaf[clear], everywhere.argmax(-1)[clear])
        assert clear.double().mean() > 0.9


@pytest.mark.parametrize("structure", TREES, ids=str)
@pytest.mark.parametrize("decision_layers", [1, 2, 3])
@pytest.mark.parametrize("sharpness", [0.3, 3.0, 30.0])
def test_it_is_the_argmax(structure, decision_layers, sharpness, way):
    tree = build(structure, sharpness, decision_layers=decision_layers, members=3)
    x = torch.randn(40, 6, dtype=torch.float64)
    assert dispatch.searcher_of(tree, x) is not None
    check(tree, x)
    check(tree, torch.randn(3, 40, 6, dtype=torch.float64))


@pytest.mark.parametrize("structure", [Structure(9), Structure(5, 3)], ids=str)
@pytest.mark.parametrize("sharpness", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_deep_trees_and_large_batches(structure, sharpness, dtype, way):
    tree = build(structure, sharpness, members=2).to(dtype)
    check(tree, torch.randn(500, 6, dtype=dtype))


@given(structures(), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 10.0, 1000.0]), st.integers(1, 3))
def test_any_structure(structure, seed, sharpness, members):
    torch.manual_seed(seed)
    with torch.no_grad():
        check(build(structure, sharpness, members=members), torch.randn(12, 6, dtype=torch.float64))


@pytest.mark.parametrize("temperature", [0.1, 5.0, "learned"])
@pytest.mark.parametrize("structure", [Structure(5), Structure(4, 3), TREES[-1]], ids=str)
def test_temperatures(structure, temperature, way):
    tree = build(structure, temperature=temperature, members=2)
    if temperature == "learned":
        tree.branching.log_scale.normal_()
    check(tree, torch.randn(30, 6, dtype=torch.float64))


@pytest.mark.parametrize("structure", [Structure(6), Structure(4, 4), *TREES[-4:]], ids=str)
def test_ties_go_to_the_first_leaf(structure, way, monkeypatch):
    """Each row has its own nodes that split evenly or not at all: leaves far apart arrive exactly equally."""
    monkeypatch.setattr(leaf_search, "MOST_BLOCKS", 1.0)  # no row is given up
    n_rows = 400
    tree = build(structure, n_features=n_rows, members=2)
    weight, bias = tree.decision.mlp.weights[0], tree.decision.mlp.biases[0]  # a feature is a row
    for fan in structure.fans:
        n_nodes, n_logits = fan.logits.shape
        if n_logits == 1:
            logits = torch.randint(-1, 2, (2, n_nodes, 1, n_rows)) * 1e4
        else:  # a power of two of children, or the shares would be rounded
            n_even = 2 ** torch.randint(n_logits.bit_length(), (2, n_nodes, 1, n_rows))
            place = torch.rand(2, n_nodes, n_logits, n_rows).argsort(2)
            logits = torch.where(place < n_even, 0.0, -1e4)
        weight[:, torch.from_numpy(fan.logits)] = logits.double()
    bias.zero_()
    x = torch.eye(n_rows, dtype=torch.float64)
    leaf, arrival = best_leaf.best_leaf(tree, x)
    everywhere = tree(x).arrival
    n_best = (everywhere == everywhere.amax(-1, keepdim=True)).sum(-1)
    assert (n_best > 1).double().mean() > 0.2
    assert torch.equal(leaf, everywhere.argmax(-1))
    assert torch.equal(arrival, everywhere.amax(-1))


def test_only_a_path_is_visited_in_a_sharp_tree():
    visited = []

    class Watched(list):
        def __getitem__(self, node):
            visited.append(node)
            return super().__getitem__(node)

    searcher = leaf_search.Searcher(build(Structure(10), 1e3))
    searcher.rows = [Watched(own) for own in searcher.rows]
    for row in torch.randn(20, 6, dtype=torch.float64).numpy():
        visited.clear()
        assert searcher.search(0, row, 10_000) is not None
        assert 10 <= len(set(visited)) == len(visited) < 20


def test_a_soft_tree_is_given_up_in_time(way):
    """Even splits make a search visit every node: it is answered by the full computation, row by row or at once."""
    tree = build(Structure(11), 1e-3)
    searcher = leaf_search.Searcher(tree)
    x = torch.randn(3, 6, dtype=torch.float64)
    assert searcher.search(0, x[0].numpy(), 500) is None
    check(tree, x)
    check(tree, torch.randn(300, 6, dtype=torch.float64))


@pytest.mark.parametrize("n_rows", [8, 30])
@pytest.mark.parametrize("n_sharp", [0, 6])
def test_rows_that_are_given_up_are_answered(n_rows, n_sharp, monkeypatch):
    """An untrained tree with many features is worth a search, but only rows far out are found in time."""
    tree = build(Structure(12), n_features=800, leaf_layers=0, members=2)
    x = torch.randn(n_rows, 800, dtype=torch.float64)
    x[:n_sharp] *= 1e3
    given_up = []
    usual = best_leaf._search_rows

    def watched(*arguments):
        given_up.append(usual(*arguments))
        return given_up[-1]

    monkeypatch.setattr(best_leaf, "_search_rows", watched)
    check(tree, x)
    assert given_up == [list(range(n_sharp, n_rows))]


def test_a_soft_tree_is_not_searched_to_its_last_row(monkeypatch):
    tree = build(Structure(12), n_features=800)
    searched = []
    usual = leaf_search.Searcher.search
    monkeypatch.setattr(leaf_search.Searcher, "search", lambda *arguments: searched.append(1) or usual(*arguments))
    check(tree, torch.randn(30, 800, dtype=torch.float64))
    assert len(searched) == 4


def test_a_trained_tree():
    x = torch.randn(400, 6)
    y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()
    tree = Tree.build(Structure(6), 6, Classes(3), leaf_layers=0)
    adam = torch.optim.Adam(tree.parameters(), lr=0.05)
    with torch.enable_grad():
        for _ in range(80):
            adam.zero_grad()
            losses.expected(tree(x), y, tree.output).sum().backward()
            adam.step()
    tree.eval()
    check(tree, x)
    for row in x[:20]:
        check(tree, row[None])


@pytest.mark.parametrize("leaf_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("output", [Classes(3), Values(2), Gaussian(2)], ids=str)
@pytest.mark.parametrize("own_input", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_predictions_are_those_of_all_leaves(leaf_layers, output, own_input, few, monkeypatch):
    if few:
        monkeypatch.setattr(dispatch, "ONE_LEAF", 0.0)
    tree = build(Structure(4), 3.0, output=output, leaf_layers=leaf_layers, members=2)
    x = torch.randn(*([2] if own_input else []), 30, 6, dtype=torch.float64)
    arrival, numbers = tree(x)
    torch.testing.assert_close(
        tree.predict(x, "single"), combine(arrival, output.mean(numbers), "single"), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"structure": Structure(3, 3, 2)},
        {"structure": IRREGULAR["mixed fans"]},
        {"structure": Structure(0)},
        {"decision_layers": 0},
        {"decision_layers": 2, "share": "layer"},
        {"branching": "sigsoftmax"},
        {"decision": lambda structure, n_features, members: nn.Linear(n_features, structure.n_logits)},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_whatever_cannot_be_searched_is_computed_in_full(settings):
    structure = settings.pop("structure", Structure(3))
    tree = build(structure, **settings)
    x = torch.randn(*([1] if "decision" in settings else []), 9, 6, dtype=torch.float64)
    assert dispatch.searcher_of(tree, x) is None
    leaf, arrival = best_leaf.best_leaf(tree, x)
    assert torch.equal(leaf, tree(x).arrival.argmax(-1))
    assert torch.equal(arrival, tree(x).arrival.amax(-1))


def test_training_and_gradients_are_left_alone():
    tree = build(Structure(3))
    x = torch.randn(4, 6, dtype=torch.float64)
    assert dispatch.searcher_of(tree, x) is not None
    assert dispatch.searcher_of(tree, x.half()) is None
    assert dispatch.searcher_of(tree, x[:, :5]) is None
    assert dispatch.searcher_of(tree, x[:0]) is None
    assert tree.predict(x[:0], "single").shape == (1, 0, 3)
    assert dispatch.searcher_of(tree.train(), x) is None
    with torch.enable_grad():
        assert dispatch.searcher_of(tree.eval(), x) is None
        assert tree.predict(x, "single").requires_grad


def test_it_sees_weights_that_change(way):
    tree = build(Structure(5), 3.0)
    x = torch.randn(20, 6, dtype=torch.float64)
    mlp = tree.decision.mlp
    check(tree, x)
    mlp.weights[0].neg_()
    mlp.biases[0].data.mul_(5)
    check(tree, x)
    mlp.weights[0] = nn.Parameter(torch.randn_like(mlp.weights[0]))
    check(tree, x)
    tree.load_state_dict(build(Structure(5), 3.0).state_dict())
    check(tree, x)
    tree.float()
    check(tree, x.float())
    tree.decision = build(Structure(5), 3.0).decision
    check(tree.double(), x)
    tree.decision.mlp = build(Structure(5), 3.0).decision.mlp
    check(tree, x)


def test_it_sees_a_module_that_cannot_be_searched(way):
    tree = build(Structure(5), 3.0)
    x = torch.randn(20, 6, dtype=torch.float64)
    check(tree, x)

    class Turned(type(tree.decision.mlp)):
        def forward(self, x):
            return -super().forward(x)

    searchable = tree.decision.mlp
    tree.decision.mlp = Turned(6, searchable.sizes).double()
    assert dispatch.searcher_of(tree, x) is None
    check(tree, x)
    tree.decision.mlp = searchable
    assert dispatch.searcher_of(tree, x) is not None
    check(tree, x)


@pytest.mark.parametrize("name", ["", "decision", "decision.mlp", "branching", "leaf", "leaf.mlp"])
@pytest.mark.parametrize("before", [False, True])
def test_forward_hooks_are_called(name, before, monkeypatch):
    """Hooks that turn what goes in or comes out are seen in what is predicted, and no longer when they are gone."""
    monkeypatch.setattr(dispatch, "ONE_LEAF", 0.0)  # leaves that search would not call as a whole
    tree = build(Structure(5), 3.0)
    x = torch.randn(20, 6, dtype=torch.float64)
    plain = tree.predict(x, "single")
    module = tree.get_submodule(name)
    called = []
    if before:
        handle = module.register_forward_pre_hook(lambda _, given: called.append(name) or (-given[0],))
    else:
        handle = module.register_forward_hook(
            lambda _, given, out: called.append(name) or (Leaves(*(-part for part in out)) if name == "" else -out)
        )
    assert dispatch.searcher_of(tree, x) is None
    arrival, numbers = tree(x)
    called.clear()
    hooked = tree.predict(x, "single")
    assert called == [name]
    assert torch.equal(hooked, combine(arrival, tree.output.mean(numbers), "single"))
    assert not torch.equal(hooked, plain)
    if not name.startswith("leaf") and name:
        assert torch.equal(best_leaf.best_leaf(tree, x)[0], arrival.argmax(-1))
    handle.remove()
    assert dispatch.searcher_of(tree, x) is not None
    assert torch.equal(tree.predict(x, "single"), plain)


@pytest.fixture
def made(monkeypatch):
    """What was asked for of searchers and of nodes."""
    asked = []

    class Counted(leaf_search.Searcher):
        def __init__(self, tree):
            asked.append("searcher")
            super().__init__(tree)

    usual = leaf_search.nodes_of
    monkeypatch.setattr(leaf_search, "nodes_of", lambda structure: asked.append("nodes") or usual(structure))
    monkeypatch.setattr(dispatch, "Searcher", Counted)
    return asked


def test_nothing_is_prepared_for_rows_on_another_device(made):
    tree = build(Structure(6)).to("meta")
    x = torch.empty(4, 6, dtype=torch.float64, device="meta")
    assert tree.predict(x, "single").shape == (1, 4, 3)
    assert best_leaf.best_leaf(tree, x)[0].shape == (1, 4)
    assert made == []


def test_weights_out_of_reach_are_prepared_for_once(made):
    tree = build(Structure(6, 2)).bfloat16()
    x = torch.randn(4, 6, dtype=torch.bfloat16)
    for _ in range(3):
        tree.predict(x, "single")
    assert made == ["searcher"]
    check(tree.double(), x.double())  # until they come within reach
    check(tree.double(), x.double())
    assert made.count("searcher") == 2


def test_nodes_are_found_once_for_a_structure(made):
    structure = Structure(4, 3)
    x = torch.randn(4, 6, dtype=torch.float64)
    one, other = build(structure), build(structure)
    one.predict(x, "single")
    other.predict(x, "single")
    one.float().predict(x.float(), "single")
    assert made.count("searcher") == 3
    assert made.count("nodes") <= 1  # or an equal structure had them already


def test_what_it_remembers_goes_with_the_tree():
    tree = build(Structure(3))
    best_leaf.best_leaf(tree, torch.randn(1, 6, dtype=torch.float64))
    before = len(dispatch._searchers)
    assert len(pickle.dumps(tree)) == len(pickle.dumps(copy.deepcopy(tree)))
    del tree
    gc.collect()
    assert len(dispatch._searchers) < before


@pytest.mark.parametrize("rows", [1, 30])
def test_what_is_not_finite_is_refused_as_everywhere(rows, way):
    tree = build(Structure(5))
    x = torch.randn(rows, 6, dtype=torch.float64)
    for bad in (float("nan"), float("inf")):
        wrong = x.clone()
        wrong[-1, 2] = bad
        with pytest.raises(ValueError, match="input must be finite"):
            best_leaf.best_leaf(tree, wrong)
    tree.decision.mlp.weights[0][0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match="logits must be finite"):
        best_leaf.best_leaf(tree, x)


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("decision_layers", [1, 2])
@pytest.mark.parametrize("structure", [Structure(6), Structure(4, 3)], ids=str)
def test_rows_whose_logits_overflow_are_refused_without_a_warning(structure, decision_layers, rows, way):
    tree = build(structure, 30.0, decision_layers=decision_layers)
    x = torch.full((rows, 6), torch.finfo(torch.float64).max, dtype=torch.float64)
    with pytest.raises(ValueError, match="logits must be finite"):
        best_leaf.best_leaf(tree, x)


def test_input_of_another_precision_is_refused_with_the_fix():
    tree = build(Structure(3)).float()
    for x in (torch.randn(4, 6, dtype=torch.float64), torch.randn(1, 4, 6, dtype=torch.float16)):
        for selection in ("multi", "single"):
            with pytest.raises(ValueError, match=rf"weights, torch.float32, got {x.dtype}; change .* x.to\(dtype\)"):
                tree.predict(x, selection)


def test_input_of_a_wrong_shape_is_refused():
    tree = build(Structure(3))
    with pytest.raises(ValueError, match="6"):
        tree.predict(torch.randn(4, 5, dtype=torch.float64), "single")


@pytest.fixture
def short_way(monkeypatch):
    """One row of one tree, answered without the ways for many."""

    def refuse(*_):
        raise AssertionError("the short way was not taken")

    monkeypatch.setattr(best_leaf, "_best_leaf", refuse)
    monkeypatch.setattr(dispatch, "_costs", lambda *_: (3.0, 1.0, 2.0))


@pytest.mark.usefixtures("short_way")
@pytest.mark.parametrize("patience", [1e6, 0.0], ids=["searched", "given up"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("sharpness", [0.1, 3.0, 1e3])
def test_one_row_of_one_tree(sharpness, temperature, patience, monkeypatch):
    monkeypatch.setattr(dispatch, "PATIENCE", patience)
    tree = build(Structure(8), sharpness, leaf_layers=0, temperature=temperature)
    for x in torch.randn(40, 1, 6, dtype=torch.float64):
        arrival, numbers = tree(x)
        wanted = combine(arrival, tree.output.mean(numbers), "single")
        assert torch.equal(tree.predict(x, "single"), wanted)
        assert torch.equal(tree.predict(x[None], "single"), wanted)


@pytest.mark.usefixtures("short_way")
def test_ties_of_one_row():
    tree = build(Structure(6), output=Classes(64), n_features=100, leaf_layers=0)
    weight, bias = tree.decision.mlp.parameters()
    weight.copy_(torch.randint(-1, 2, weight.shape) * 1e4)
    bias.zero_()
    tree.leaf.values.copy_(100 * torch.eye(64))
    rows = torch.eye(100, dtype=torch.float64)
    everywhere = tree(rows).arrival[0]
    assert ((everywhere == everywhere.amax(-1, keepdim=True)).sum(-1) > 1).double().mean() > 0.2
    assert [int(tree.predict(row[None], "single").argmax()) for row in rows] == everywhere.argmax(-1).tolist()


@pytest.mark.usefixtures("short_way")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_one_row_that_is_not_finite_is_refused(value, sign):
    tree = build(Structure(5), 1e10, leaf_layers=0)
    tree.decision.mlp.weights[0].abs_().mul_(sign)
    with pytest.raises(ValueError, match="must be finite"):
        tree.predict(torch.full((1, 6), value, dtype=torch.float64), "single")
