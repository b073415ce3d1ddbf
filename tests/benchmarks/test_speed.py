"""The benchmark of speed: it runs, keeps the record, and its pages are made from its data."""

import gzip
import json
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import speed
import torch
from timing import backends, curves, floors, latency, page, table, work
from timing.clock import Clock
from toolkit.failure import failure_text
from toolkit.idx import FILES

from tartree import losses, ops
from tartree.nn import Leaves
from tartree.ops import backend
from tartree.training import History

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
CPU = Clock(torch.device("cpu"), repeats=1, seconds=0.01)


@pytest.fixture
def run(tmp_path):
    """Runs the program on tiny sizes; its status, its results and its page."""

    def go(*options):
        out = tmp_path / "tiny"
        status = speed.main(
            ["--device", "cpu", "--small", "--out", str(out), "--repeats", "1", "--seconds", "0.01", *options]
        )
        return status, json.loads(out.with_suffix(".json").read_text()), out.with_suffix(".md").read_text()

    return go


@pytest.fixture
def pretend(monkeypatch):
    """Makes one section the only one, and what it does."""
    monkeypatch.setattr(speed, "check_against_reference", lambda clock: {"error": 1e-7})

    def sections(name, function):
        monkeypatch.setattr(speed, "sections", lambda arguments, clock: {name: function})

    return sections


@pytest.fixture
def images(tmp_path):
    """A folder with few random images in MNIST's format."""
    generator = np.random.default_rng(0)
    for name in FILES:
        shape = (40, 28, 28) if "images" in name else (40,)
        numbers = generator.integers(0, 10, shape, dtype=np.uint8)
        head = bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
        (tmp_path / name).write_bytes(gzip.compress(head + numbers.tobytes()))
    return tmp_path


@pytest.mark.slow
def test_a_run(run, images):
    status, results, text = run("--sections", "shapes", "mnist", "precision", "--mnist", str(images))
    assert status == 0
    assert 0 < results["error"] < 1e-4
    assert set(results["sections"]) == {"shapes", "mnist", "precision"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", section["date"]) for section in results["sections"].values())
    assert [row["precision"] for row in results["sections"]["precision"]["rows"]] == ["single", "bfloat16"]
    assert all(row["first_s"] > 0 for row in results["sections"]["precision"]["rows"])
    first = results["sections"]["mnist"]
    assert first["first_s"] > 0
    assert first["warm"]["accuracies"] == first["accuracies"]
    assert 0 < results["errors"]["bfloat16"] < 0.05
    parts = ("## Other shapes", "## MNIST", "in a new process", "trains again", "## Precision", "sizes tiny")
    for part in (
        *parts,
        "not counted, so that imports and compilation are done",
        "D 12, W 2, S 2, L 0.",
        "in bfloat16",
    ):
        assert part in text


def test_the_table_has_the_estimator_and_names_missing_models(monkeypatch):
    works = [work.Work(depth, features=5, batch=32) for depth in (3, 2)]
    columns = table.compare_depths(works, CPU, peers=None)
    assert [column["work"]["depth"] for column in columns] == [2, 3]
    assert all(column["predict"]["ours, predict_proba"] > 0 for column in columns)
    assert "- leesael/TART, D 2, 3: no clone." in page._table({"rows": columns})

    asked = []

    def make_plain(shape, clock):
        asked.append(shape.depth)
        return {"step": lambda: None, "predict": lambda: None}

    monkeypatch.setattr(table, "make_plain", make_plain)
    monkeypatch.setattr(table, "PATIENCE", 0.0)
    columns = table.compare_depths(works, CPU, peers=None)
    assert asked == [2]
    assert "- plain torch, eager, D 2, 3: at D 2, one batch of predictions takes 0 s." in page._table({"rows": columns})


def test_sections_that_fail_or_are_not_run_keep_their_results(run, pretend, capsys):
    pretend("memory", lambda: {"units": {"3": 1.5}})
    assert run()[0] == 0
    pretend("row", lambda: {"depth": 3, "rows": []})  # as in older results
    assert run()[0] == 0
    pretend("memory", lambda: 1 / 0)
    status, results, text = run()
    assert status == 1
    assert set(results["sections"]) == {"memory", "row"}
    assert results["sections"]["memory"]["units"] == {"3": 1.5}
    assert "| 3 | 1.5 |" in text
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_an_interrupt_is_no_result(run, pretend):
    with pytest.raises(KeyboardInterrupt):
        work.finished(History(interrupted=True))
    pretend("memory", lambda: {"units": {"3": 1.5}})
    run()
    pretend("mnist", lambda: work.finished(History(interrupted=True)))
    status, results, _ = run()
    assert status == 130
    assert set(results["sections"]) == {"memory"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--small", "--small needs --out"),
        ("--sections mnist", "give their folder with --mnist"),
        ("--sections precision", "give their folder with --mnist"),
        ("--device cpu --sections choice", "use --device cuda"),
        ("--device toaster", "cpu or cuda"),
        ("--device cuda:99", "torch finds"),
        ("--repeats 0", "must be a whole number of at least 1, got 0"),
        ("--seconds -1", "above 0"),
        ("--seconds nan", "above 0"),
        ("--depths 0", "at least 1, got 0"),
        ("--depths eight", "must be a whole number of at least 1, got eight"),
        ("--depths 2.5", "must be a whole number of at least 1, got 2.5"),
        ("--seconds long", "must be a number above 0, got long"),
        ("--out .", "must be the path of a file"),
        ("--peers nowhere", "some of TART"),
        ("--mnist nowhere", "all of train-images"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(options, message, capsys):
    with pytest.raises(SystemExit) as stop:
        speed.main(options.split())
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_results_that_cannot_be_joined_are_refused(tmp_path):
    out = tmp_path / "speed"
    with pytest.raises(SystemExit, match="does not exist; run sections first"):
        speed.main(["--page", "--out", str(out)])
    for content in ("[1]", "{", "{}"):
        out.with_suffix(".json").write_text(content)
        with pytest.raises(SystemExit, match="must hold results"):
            speed.main(["--device", "cpu", "--out", str(out)])
    out.with_suffix(".json").write_text(json.dumps({"machine": {"device": "cpu"}, "error": 0.0, "sections": {}}))
    with pytest.raises(SystemExit, match="same machine"):
        speed.main(["--device", "cpu", "--out", str(out), "--sections", "row"])


def test_a_name_with_a_dot_is_kept(pretend, tmp_path):
    pretend("memory", lambda: {"units": {"3": 1.5}})
    (tmp_path / "speed.json").write_text("of another version")
    assert speed.main(["--device", "cpu", "--out", str(tmp_path / "speed.v2")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.json", "speed.v2.json", "speed.v2.md"]
    assert (tmp_path / "speed.json").read_text() == "of another version"
    assert speed.main(["--page", "--device", "cpu", "--out", str(tmp_path / "speed.v2")]) == 0


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "speed", Path("/proc/none/speed")):
        with pytest.raises(SystemExit, match=r"^cannot (read|write to) .*; choose another path with --out$"):
            speed.main(["--device", "cpu", "--out", str(out)])


@pytest.mark.parametrize("name", ["speed", "speed-gpu"])
def test_the_pages_are_made_from_the_data(name, tmp_path):
    results = json.loads((FOLDER / f"{name}.json").read_text())
    page.write_page(results, tmp_path / name)
    text = (tmp_path / f"{name}.md").read_text()
    assert (FOLDER / f"{name}.md").read_text() == text
    assert not re.search(r"(?<![\w:/.])/(\w|\.)+/", text), "a path of a machine"


def test_failure_texts_have_no_paths():
    error = OSError("no '/home/me/x.py' there\nand more")
    assert failure_text(error, first_line=True) == "OSError: no '(a path)' there"
    assert failure_text(error) == "OSError: no '(a path)' there and more"
    assert failure_text(ValueError(r"C:\Users\me is bad, see https://example.org/a/b, 1/2")) == (
        "ValueError: (a path) is bad, see https://example.org/a/b, 1/2"
    )


def test_a_curve_that_is_cut_says_so(monkeypatch):
    monkeypatch.setattr(curves, "_step", lambda *_: ({"ours": 2.0, "floor": 1.0}, 10.0))
    monkeypatch.setattr(curves, "_epoch", lambda *_: ({"epoch_s": 0.0123}, 0.0))
    results = curves.measure(CPU, seconds=15.0)
    assert results["cut"]["depth"] == [6, 8, 10]
    lines = page._curves(results)
    assert "- depth 2: 2.000 / 1.000; 4: 2.000 / 1.000 (time ran out before 6, 8, 10)" in lines
    assert "- rows 1,000: 12.3; 10,000: 12.3; 100,000: 12.3; 1,000,000: 12.3" in lines


def test_kernels_are_switched_off_and_on(monkeypatch):
    monkeypatch.setattr(backend, "takes_kernels", lambda *arguments: True)
    with backends.natively():
        assert not backend.takes_kernels(1, 2, 3)
    assert backend.takes_kernels(1, 2, 3)


def test_other_shapes_run_after_a_failure(monkeypatch):
    both = backends._both
    monkeypatch.setattr(backends, "_both", lambda shape, clock: both(shape, clock) if shape.leaf_layers else 1 / 0)
    text = "\n".join(page._choice(backends.measure(CPU, small=True)))
    numbers = r"\| [\d.]+, [\d.]+ \([\d.]+\) \|"
    assert re.search(rf"\| D 1, W 2, S 2, L 0 \| failed \|\n\| D 1, W 2, S 2, L 1 {numbers}", text)
    assert re.search(rf"\| D 1, W 8, S 4, L 1 {numbers}", text)
    assert "- D 1, W 8, S 8, L 0: ZeroDivisionError: division by zero" in text


def test_the_page_names_shapes_where_native_is_faster():
    rows = [{"work": vars(work.Work(2, batch=32)), "fused": 1.0, "native": native} for native in (3.0, 2.0)]
    assert page._choice({"rows": rows})[-1].endswith("Native is faster at none of them.")
    rows[1]["native"] = 0.5
    assert page._choice({"rows": rows})[-1].endswith("Native is faster at D 2, W 2, S 2, L 0, 32 rows.")


def test_the_check_sees_a_wrong_prediction(monkeypatch):
    right = work.our_prediction
    monkeypatch.setattr(work, "our_prediction", lambda tree, x, eager=False: lambda: right(tree, x)() + 0.001)
    with pytest.raises(AssertionError, match="must equal the reference, got"):
        work.check_against_reference(CPU)


def test_the_check_sees_rough_products(monkeypatch):
    monkeypatch.setattr(work, "CHECKED", (work.Work(3, features=5, batch=16),))
    assert 0 < work.check_against_reference(CPU)["errors"]["bfloat16"] < 0.05
    monkeypatch.setitem(work.TOLERANCES, "bfloat16", 1e-6)
    with pytest.raises(AssertionError, match=r"an error of \S+ in bfloat16"):
        work.check_against_reference(CPU)


def test_one_row_is_predicted_on_new_rows_by_the_same_leaf(monkeypatch):
    results = latency.measure(torch.device("cpu"), depth=5, features=30)
    assert [(row["trained"], row["precision"]) for row in results["rows"]] == [
        (trained, precision) for trained in (False, True) for precision in ("float64", "float32")
    ]
    assert 0.5 < results["right"] < 1
    text = "\n".join(page._latency(results))
    assert f"an accuracy of {100 * results['right']:.1f} %" in text
    right = latency.best_leaf
    monkeypatch.setattr(latency, "best_leaf", lambda tree, x: ((right(tree, x)[0] + 1) % 32, None))
    with pytest.raises(AssertionError, match="the search must find the leaf"):
        latency.measure(torch.device("cpu"), depth=5, features=30)


def test_plain_torch_computes_what_ours_does():
    shape = work.Work(4, features=5, batch=16, classes=3)
    plain, tree = floors.PlainTree(shape, torch.device("cpu")), shape.tree(torch.device("cpu"))
    with torch.no_grad():
        plain.linear.weight.copy_(tree.decision.mlp.weights[0][0])
        plain.linear.bias.copy_(torch.randn(15))
        tree.decision.mlp.biases[0][0].copy_(plain.linear.bias)
        tree.leaf.values[0].copy_(plain.leaves)
    rows = shape.rows(torch.device("cpu"), batches=1)
    arrival = ops.arrival(tree.decision(rows.x), tree.structure, backend="reference")
    wanted = losses.expected(Leaves(arrival, tree.leaf(rows.x)), rows.target, tree.output).sum()
    loss = plain.loss(rows.x, rows.target)
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    wanted.backward()
    torch.testing.assert_close(plain.leaves.grad, tree.leaf.values.grad[0])
    torch.testing.assert_close(plain.linear.weight.grad, tree.decision.mlp.weights[0].grad[0])
    torch.testing.assert_close(plain(rows.x), tree.eval().predict(rows.x)[0])


def test_a_fleet_is_compared_as_whole_fits_and_by_epochs(monkeypatch):
    monkeypatch.setattr(table, "_fits", lambda shape, *_: [1.0, 2.0] if shape.members == 1 else [3.0, 9.0])
    results = table.members_and_epochs(CPU, [], 64, 4)
    assert results["fleet"]["ratio"] == 4.5
    assert results["fleet"]["epoch ratio"] == pytest.approx(6.0)
    assert "(by the difference of 200 and 40 epochs)" in page._epochs(results)[-1]
    assert page._epochs(results)[-1].endswith("37.5 ms, of a single tree 6.250 ms: 6.00 times as long.")


def test_what_cannot_be_captured_is_refused(monkeypatch):
    clock = Clock(torch.device("cpu"))
    clock.stream = "a stream"
    monkeypatch.setattr(clock, "surroundings", nullcontext)

    def graph(*arguments, **named):
        raise RuntimeError("not here")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    with pytest.raises(RuntimeError, match="must be capturable as a graph, got RuntimeError: not here"):
        floors.make_floors(work.Work(2, features=3, batch=4), clock)
