"""The study on UCI sets: members are runs, results resume, and the page states what is missing."""

import json
import os
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from toolkit.environment import machine
from uci import command, differences, models, ranks, runner, scores, sets, trees
from uci.baselines import BASELINES, Baseline
from uci.processes import call_in_processes
from uci.results import Results
from uci.scores import Scores

from tartree.datasets import UciSummary
from tartree.training import RECIPES, MemberRows, TensorRows, train


def test_sets_are_ordered_by_size(cache):
    assert sets.list_sets(["small"]) == ["monks-1", "iris", "wine"]
    assert sets.list_sets(["large"]) == []
    with pytest.raises(ValueError, match="got rose"):
        sets.list_sets(["small"], ["rose"])


@pytest.mark.parametrize("members", [1, 2])
def test_a_run_among_members_learns_what_it_learns_alone(cache, small, members):
    model = replace(small, members=members)
    data, recipe = sets.load_set("iris"), replace(RECIPES["paper"], epochs=30)
    together = trees.build(model, data)
    start = [p.detach().clone() for p in together.parameters()]
    trees.fit(together, model, data, recipe)
    for run in range(4):
        members_of_run = slice(run * members, (run + 1) * members)
        alone = trees.build(model, replace(data, train=data.train[:1], test=data.test[:1]))
        with torch.no_grad():
            for p, first in zip(alone.parameters(), start, strict=True):
                p.copy_(first[members_of_run])
        rows = TensorRows(data.x[data.train[run]], data.y[data.train[run]])
        train(alone, rows, recipe, generator=torch.Generator().manual_seed(0))
        for p, q, first in zip(alone.parameters(), together.parameters(), start, strict=True):
            torch.testing.assert_close(p, q[members_of_run], rtol=1e-3, atol=1e-4)
            assert not torch.allclose(p, first[members_of_run])


def test_each_run_has_a_table_of_its_rows(cache):
    data = sets.load_set("wine")
    rows = trees.gather(data, data.train, 2)
    assert isinstance(rows, MemberRows)
    assert (len(rows), rows.weight, rows.share) == (45, None, 2)
    for run, index in enumerate(data.train):
        assert torch.equal(rows.x[:, run], data.x[index])
        assert torch.equal(rows.target[:, run], data.y[index])
    shorter = trees.gather(data, (data.train[0], data.train[1][:40]), 1)
    assert shorter.weight.sum(0).tolist() == [45, 40]
    fixed = trees.gather(sets.load_set("monks-1"), sets.load_set("monks-1").train, 1)
    assert isinstance(fixed, TensorRows)
    assert (len(fixed), fixed.weight) == (8, None)


def test_scores_are_those_of_predictions_run_by_run(cache, small, monkeypatch):
    model, data = replace(small, members=3), sets.load_set("wine")
    tree = trees.build(model, data)
    monkeypatch.setitem(trees.CHUNK, "cpu", 1000)  # several chunks
    accuracies_by_selection = trees.score(tree, model, data, ["multi", "single"])
    for selection, accuracies in accuracies_by_selection.items():
        for run, test in enumerate(data.test):
            predicted = tree.predict(data.x[test], selection)[3 * run : 3 * run + 3].mean(0)
            assert accuracies[run] == pytest.approx((predicted.argmax(-1) == data.y[test]).double().mean().item())


def test_early_stopping_holds_out_rows_of_each_run(cache, small):
    model, data = replace(small, early_stopping="refit"), sets.load_set("wine")
    for run in range(4):
        kept, held = trees._hold_out(data, run, RECIPES["default"])
        assert torch.equal(torch.cat([kept, held]).sort().values, data.train[run].sort().values)
    accuracies = trees.run_tree(model, data, ["multi"], replace(RECIPES["default"], epochs=25))
    assert min(accuracies["multi"]) > 0.6


def test_perceptrons_start_with_he_initialisation(cache):
    tree = trees.build(models.TREES["mlp-4"], sets.load_set("iris"))
    weight = tree.leaf.mlp.weights[1]
    assert weight.std().item() == pytest.approx((2 / 100) ** 0.5, rel=0.02)
    assert all((bias == 0).all() for bias in tree.leaf.mlp.biases)


class Recorder:
    """A classifier that always predicts one code, and records the rows that it gets."""

    def __init__(self, code):
        self.code, self.history_ = code, types.SimpleNamespace(interrupted=False)
        self.reading_size_ = types.SimpleNamespace(numbers=7)
        self.fitted = self.tested = self.epochs = None

    def set_params(self, epochs):
        self.epochs = epochs

    def fit(self, X, y):
        self.fitted = X[:, 0].astype(int).tolist(), y.tolist()

    def predict(self, X):
        self.tested = X[:, 0].astype(int).tolist()
        return np.full((len(X), 1), float(self.code))  # as some packages do


def recording(kind, code):
    """Return a model that makes recorders, and the list of them: seed, other arguments, recorder."""
    made = []

    def make(seed, *others):
        made.append((seed, others, Recorder(code)))
        return made[-1][2]

    if kind == "baseline":
        return Baseline("fake", "fake", make), made
    recorded = type("Recorded", (models.EstimatorModel,), {"make": lambda self, *arguments: make(*arguments)})
    return recorded("fake", "fake", ()), made


@pytest.mark.parametrize(("kind", "others"), [("baseline", (2,)), ("estimator", ("cpu", "tf32"))])
def test_others_learn_from_training_rows_and_are_scored_on_test_rows(kind, others):
    y = torch.tensor([0, 2, 3, 1, 2, 3, 0, 2, 2, 3])
    train = [torch.tensor(rows) for rows in ([0, 1, 2, 4], [9, 5, 1], [6, 0, 2, 7])]  # never class 1; [1] without 0
    test = [torch.tensor(rows) for rows in ([3, 8, 7, 5], [0, 2], [8, 4, 9])]
    x = torch.arange(10.0).unsqueeze(1)  # a row's feature is its number
    data = sets.StudySet("made-up", "small", x, y, tuple(train), tuple(test), 4, False)
    model, made = recording(kind, code=1)
    settings = runner.Settings(precision="tf32", threads=2, seed=5)
    numbers = []
    accuracies = runner._scores(runner.Job((model,), "made-up"), data, settings, torch.device("cpu"), numbers)
    assert len(numbers) == (data.runs if isinstance(model, models.EstimatorModel) else 0)
    assert [seed for seed, _, _ in made] == [15, 16, 17]  # three runs of seed 5
    assert [arguments for _, arguments, _ in made] == [others] * 3
    codes = [[0, 1, 2, 1], [1, 1, 0], [0, 0, 2, 1]]  # without the gaps
    assert [recorder.fitted for _, _, recorder in made] == [
        (rows.tolist(), labels) for rows, labels in zip(train, codes, strict=True)
    ]
    assert [recorder.tested for _, _, recorder in made] == [rows.tolist() for rows in test]
    # Code 1 is class 2 in the first and last run, class 3 in the other.
    assert accuracies == {"fake": pytest.approx([2 / 4, 1 / 2, 2 / 3])}
    assert {recorder.epochs for _, _, recorder in made} == {None}


def test_the_refit_sees_all_training_rows(cache, small, monkeypatch):
    data, steps = sets.load_set("wine"), []

    def learn(tree, model, data, recipe, rows, **options):
        steps.append((rows, options))
        return types.SimpleNamespace(best_epoch=np.arange(4))

    monkeypatch.setattr(trees, "learn", learn)
    monkeypatch.setattr(trees, "draw", lambda tree, model, seed: steps.append(seed))
    trees.fit(None, replace(small, early_stopping="refit"), data, RECIPES["default"], seed=3)
    (kept, first), drawn, (again, second) = steps
    assert drawn == 3  # new weights before the refit
    for run in range(4):
        expected, held = trees._hold_out(data, run, RECIPES["default"])
        assert torch.equal(kept[run], expected)
        assert torch.equal(first["validation"].x[:, run], data.x[held])
        assert torch.equal(again[run], data.train[run])
        assert len(expected) < len(data.train[run])
    assert second == {"keep_epoch": pytest.approx(np.arange(4)), "seed": 3}
    steps.clear()
    for stopping, used in ((True, kept), (False, data.train)):
        trees.fit(None, replace(small, early_stopping=stopping), data, RECIPES["default"])
        rows, _ = steps.pop()
        assert all(map(torch.equal, rows, used))
        assert not steps


def test_published_numbers():
    """Large, medium, small, as in the paper."""
    published = {
        "tart-a": (88.2, 82.6, 77.0),
        "tart-b": (92.1, 82.7, 76.0),
        "tart-c": (89.6, 83.1, 76.3),
        "mlp-1": (78.7, 78.9, 73.4),
        "mlp-16": (85.3, 78.3, 75.1),
        "D8-L1-multi": (89.1, 82.9, 76.5),
        "D2-L1-single": (84.4, 81.1, 74.7),
        "D4-L2-single": (89.0, 82.6, 76.1),
        "D8-L4-single": (91.9, 82.0, 75.4),
        "D7-L2-W3S2-single": (91.2, 82.8, 75.8),
        "D1-L2-W31-single": (90.4, 83.2, 75.5),
        "DT": (88.3, 76.3, 71.9),
        "LR": (79.1, 80.8, 75.8),
        "SVM-linear": (77.7, 79.0, 74.9),
        "SVM-RBF": (87.6, 81.1, 77.0),
    }
    assert models.GROUPS == ("large", "medium", "small")
    assert {name: runner.pick_models([name])[0].published for name in published} == published


def test_the_accuracy_that_the_missing_set_would_need():
    summary = UciSummary(20_000, 3, 2, False, (), "", 0)
    lines = accuracies("D6-L1-multi", first=[0.90] * 4, second=[0.84] * 4)
    lines += accuracies("D2-L4-single", first=[0.92] * 4, second=[0.92] * 4)  # 0.1 points away
    scores = Scores({(line["model"], line["set"]): line for line in lines}, {"first": summary, "second": summary})
    text = differences.missing_set(scores)
    implied = 3 * 88.2 - 90 - 84  # so that the mean of three is the published one
    assert f"| {implied:.1f} |" in next(line for line in text.splitlines() if line.startswith("| TART-A"))
    assert "from 92.3 to 92.3" in text  # 3 * 92.1 - 2 * 92
    assert "It is outside for TART-A: this set cannot explain the difference." in text


def test_trees_with_as_many_leaves_are_compared():
    summary = UciSummary(20_000, 3, 2, False, (), "", 0)
    lines = accuracies("D4-L2-single", first=[0.90] * 4) + accuracies("D1-L2-W15-single", first=[0.912] * 4)
    scores = Scores({(line["model"], line["set"]): line for line in lines}, {"first": summary})
    rows = [line for line in differences.as_many_leaves(scores).splitlines() if line.startswith("| 16")]
    assert rows == ["| 16, 15 | large | 89.0, 90.1 (+1.1) | 90.0, 91.2 (+1.2) |"]


def test_the_paper_has_24_structures_of_19_trainings():
    assert len(models.STRUCTURES) == 24
    assert len({model.training for model in models.STRUCTURES}) == 19
    assert all(None not in model.published for model in models.STRUCTURES)
    assert [models.TREES[models.ALIASES[name]].structure.n_leaves for name in ("tart-a", "tart-b", "tart-c")] == [
        64,
        4,
        15,
    ]


def test_a_run_resumes_and_records_failures(cache, monkeypatch, capsys):
    out = cache / "out"
    arguments = [
        "--epochs",
        "2",
        "--sets",
        "iris",
        "wine",
        "--out",
        str(out),
        "--models",
        "D2-L1-multi",
        "D2-L1-single",
    ]
    monkeypatch.setattr(runner, "run_tree", lambda *_: 1 / 0)
    assert command.main(arguments) == 0
    assert "FAILED: ZeroDivisionError" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("TARTREE_DATA", str(cache / "cache"))
    assert command.main(arguments) == 0
    assert "0 trainings to do" in capsys.readouterr().out
    assert command.main([*arguments, "--retry"]) == 0
    with open(out / "results.jsonl", "a") as file:
        file.write('{"model": "D2-L1-mul')  # cut by a crash
    assert command.main([*arguments, "DT"]) == 0
    text = capsys.readouterr().out
    assert "2 trainings to do" in text
    lines = Results(out / "results.jsonl").read(epochs=2)
    assert set(lines) == {(m, s) for m in ("D2-L1-multi", "D2-L1-single", "DT") for s in ("iris", "wine")}
    for line in lines.values():
        assert line["failure"] is None
        assert len(line["accuracy"]) == 4
        assert line["machine"]["device"] == "CPU"


def test_an_interrupt_keeps_results(cache, monkeypatch, capsys):
    calls = []

    def stop_at_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"multi": [1.0] * 4}

    monkeypatch.setattr(runner, "run_tree", stop_at_second)
    assert command.main(["--models", "tart-a", "--out", str(cache / "out")]) == 130
    assert "to resume" in capsys.readouterr().err
    assert set(Results(cache / "out" / "results.jsonl").read()) == {("D6-L1-multi", "monks-1")}


def test_time_may_be_up(cache, capsys):
    assert command.main(["--models", "DT", "--limit-seconds", "-1", "--out", str(cache / "out")]) == 0
    assert "time is up after 0 of 3" in capsys.readouterr().out


def test_a_missing_package_is_one_line(cache, monkeypatch, capsys):
    absent = replace(BASELINES["XGBoost"], package="no_such_package")
    monkeypatch.setitem(BASELINES, "XGBoost", absent)
    assert command.main(["--models", "XGBoost", "--out", str(cache / "out")]) == 0
    text = capsys.readouterr().out
    assert "XGBoost is skipped: the package no_such_package is not installed" in text
    assert "0 trainings" in text


def test_an_unknown_model_is_one_line(cache, capsys):
    assert command.main(["--models", "Z"]) == 2
    assert "got 'Z'" in capsys.readouterr().err


def accuracies(model, **by_set):
    return [
        {
            "model": model,
            "set": name,
            "accuracy": runs,
            "failure": None if runs else "MemoryError: no room",
            "seconds": 1.0,
        }
        | {"training": model, "epochs": None, "precision": "tf32", "machine": machine(torch.device("cpu"))}
        for name, runs in by_set.items()
    ]


def test_the_page_has_means_of_whole_groups_only(cache):
    results, out = Results(cache / "out" / "results.jsonl"), cache / "out"
    results.append(accuracies("D6-L1-multi", iris=[0.5, 0.6, 0.7, 0.8], wine=[0.9] * 4, **{"monks-1": [1.0] * 4}))
    results.append(accuracies("DT", iris=[0.5] * 4, wine=[1.0] * 4, **{"monks-1": [0.7] * 4}))
    results.append(accuracies("LR", iris=[0.6] * 4, wine=[0.6] * 4, **{"monks-1": [0.6] * 4}))
    results.append(accuracies("D8-L4-single", iris=None, wine=[0.9] * 4))
    results.append(accuracies("default", iris=[0.6] * 4, wine=[1.0] * 4))
    results.append([{**accuracies("mlp-4", wine=[0.1] * 4)[0], "epochs": 2}])  # a trial
    assert command.main(["--report", "--out", str(out)]) == 0
    page = (cache / "out.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| TART-A"))
    mean = 100 * (0.65 + 0.9 + 1.0) / 3
    assert f"| 77.0 | {mean:.1f} ± 3.7 | **{mean - 77.0:+.2f}** |" in row
    assert "| L 4, single, D 8 | 91.9 | - | - | 82.0 | - | - | 75.4 | - (1 of 3 sets) | - |" in page
    assert "| L 4, single, D 8 | iris | tf32 | MemoryError: no room | - |" in page
    assert "| decision tree | 1 / 1 / 0 (2) |" in page
    assert "3 models on 3 sets" in page
    assert "| MLP-4 | 91.8 | - | - | 83.0 | - | - | 76.8 | - | - |" in page
    assert (out / "ranks-small.png").stat().st_size > 1000
    table = (out / "scores.csv").read_text().splitlines()
    assert table[0] == "set,group,rows,features,classes,D6-L1-multi,D8-L4-single,default,DT,LR"
    assert table[1] == "iris,small,40,3,2,65.00,,60.00,50.00,60.00"


def test_means_do_not_need_the_set_that_our_archive_lacks(cache, monkeypatch):
    monkeypatch.setattr(scores, "LACKING", "wine")
    results = Results(cache / "results.jsonl")
    results.append(accuracies("DT", iris=[0.5] * 4, **{"monks-1": [0.7] * 4}))
    assert Scores.read(results).mean("DT", "small").value == pytest.approx(60)
    results.append(accuracies("LR", wine=[0.5] * 4))
    assert Scores.read(results).mean("DT", "small") is None


def test_other_seeds_and_times_of_commands(cache, monkeypatch):
    out = cache / "out"
    Results(out / "results.jsonl").append(
        accuracies("D6-L1-multi", iris=[0.5] * 4, wine=[0.9] * 4, **{"monks-1": [1.0] * 4})
    )
    short = replace(models.TREES["D6-L1-multi"], recipe=replace(RECIPES["paper"], epochs=1))
    monkeypatch.setitem(models.TREES, "D6-L1-multi", short)
    for seed in ("1", "2"):
        assert command.main(["--models", "tart-a", "--out", str(out), "--seed", seed]) == 0
    first, second = (Results(out / f"seed-{seed}.jsonl").read() for seed in "12")
    assert any(first[pair]["accuracy"] != second[pair]["accuracy"] for pair in first)
    assert {line["seed"] for line in second.values()} == {2}
    assert command.main(["--report", "--out", str(out)]) == 0
    page = (cache / "out.md").read_text()
    means = [100 * np.mean([line["accuracy"] for line in lines.values()]) for lines in (first, second)]
    assert f"| TART-A (linear leaves, multi, D 6) | small | 77.0 | 80.0, {means[0]:.1f}, {means[1]:.1f} |" in page
    assert page.count("| tart-a | 3 | 3 |") == 2  # commands, with sets and trainings


def printed(capsys, *arguments):
    """Run a command and return what it prints."""
    assert command.main(list(map(str, arguments))) == 0
    return capsys.readouterr().out


def test_a_trial_is_no_real_run(cache, capsys):
    out = cache / "out"
    arguments = ["--sets", "iris", "--models", "DT", "--out", out]
    assert "1 trainings to do" in printed(capsys, *arguments, "--epochs", 1)
    assert "0 trainings to do" in printed(capsys, *arguments, "--epochs", 1)
    assert "1 trainings to do" in printed(capsys, *arguments, "--epochs", 2)
    assert not (out / "times.jsonl").exists()
    assert "1 trainings to do" in printed(capsys, *arguments)
    assert "1 trainings to do" in printed(capsys, *arguments, "--epochs", 3)  # after the real run in the file
    assert "0 trainings to do" in printed(capsys, *arguments)
    assert [line["epochs"] for line in Results(out / "results.jsonl").read().values()] == [None]
    assert len((out / "times.jsonl").read_text().splitlines()) == 1


def test_times_of_whole_commands_only(cache, capsys, monkeypatch):
    out = cache / "out"
    times = out / "times.jsonl"
    with monkeypatch.context() as broken:
        broken.setattr(runner, "load_set", lambda name: 1 / 0)
        assert "FAILED" in printed(capsys, "--models", "DT", "--sets", "iris", "--out", out)
    assert not times.exists()
    printed(capsys, "--models", "DT", "--limit-seconds", "-1", "--out", out)
    assert not times.exists()
    printed(capsys, "--models", "DT", "--groups", "small", "medium", "--retry", "--out", out)
    printed(capsys, "--models", "LR", "--out", out)
    some, whole = map(json.loads, times.read_text().splitlines())
    assert (some["groups"], some["sets"], some["trainings"]) == (["small", "medium"], 3, 3)
    assert "groups" not in whole
    assert whole["machine"]["device"] == "CPU"


def test_all_recorded_lines_count_as_done():
    folder = Path(__file__).parents[2] / "docs" / "benchmarks" / "uci"
    for seed, name in enumerate(["results.jsonl", "seed-1.jsonl"]):
        results = Results(folder / name)
        texts = (folder / name).read_text(encoding="utf-8").splitlines()
        pairs = {(line["model"], line["set"]) for line in map(json.loads, texts)}
        assert set(results.read()) == pairs
        offered = {**models.TREES, **BASELINES}
        names = [model for model in dict.fromkeys(model for model, _ in pairs) if model in offered]
        members = list(dict.fromkeys(name for _, name in pairs))
        left = runner.plan(runner.pick_models(names), members, results, runner.Settings(seed=seed))
        assert not pairs & {(model.name, job.set) for job in left for model in job.models}


DAMAGED = [
    b'{"model": "DT", "set": "iris"}\n',
    b'{"model": "DT", "set": "iris", "failure": null}\n',
    b'{"model": "DT", "set": "iris", "failure": null, "accuracy": null}\n',
    b'{"model": "DT", "set": "iris", "accuracy": [1.0, 1.0, 1.0, 1.0]}\n',
    b'{"model": ["DT"], "set": "iris", "failure": null, "accuracy": [1.0]}\n',
    b"[1]\nnull\n3\n",
    b'{"model": "DT", "set": "iris", "failure": "\xff"}\n',
    b'{"model": "DT", "set": "iris", "fail\xff\xfe\x00',
]


@pytest.mark.parametrize("end", DAMAGED)
def test_a_damaged_line_is_none(cache, capsys, end):
    out = cache / "out"
    results = Results(out / "results.jsonl")
    results.append(accuracies("DT", wine=[1.0] * 4))
    results.path.write_bytes(results.path.read_bytes() + end)
    assert set(results.read()) == {("DT", "wine")}
    printed(capsys, "--report", "--out", out)
    assert "1 trainings to do" in printed(capsys, "--models", "DT", "--sets", "iris", "wine", "--out", out)
    assert set(results.read()) == {("DT", "wine"), ("DT", "iris")}


WRONG = [
    (["--epochs", "0"], "--epochs: must be a whole number of at least 1, got 0"),
    (["--threads", "0"], "--threads: must be a whole number of at least 1, got 0"),
    (["--processes", "0"], "--processes: must be a whole number of at least 1, got 0"),
    (["--processes", "-1"], "--processes: must be a whole number of at least 1, got -1"),
    (["--processes", "two"], "--processes: must be a whole number of at least 1, got two"),
    (["--seed", "-1"], "--seed: must be a whole number of at least 0, got -1"),
    (["--device", "banana"], "--device: must be cpu, cuda, or cuda:N for the GPU of number N, got 'banana'"),
    (["--device", "meta"], "--device: must be cpu, cuda, or cuda:N for the GPU of number N, got 'meta'"),
    (["--device", "cuda"], "--device: torch finds no GPU, got 'cuda'; use --device cpu"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_options_are_refused_at_the_start(cache, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as caught:
        command.main(["--models", "DT", "--out", str(cache / "out"), *arguments])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
    assert not (cache / "out").exists()


def test_available_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [command.device_problem(name) for name in ("cpu", "cuda", "cuda:1")] == [None] * 3
    assert "must be below cuda:2, the number of GPUs, got 'cuda:2'" in command.device_problem("cuda:2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.device_problem("cuda", on_cluster=True) is None  # its nodes may have them


def test_sets_of_other_groups_are_named(cache, capsys):
    assert command.main(["--models", "DT", "--sets", "iris", "--groups", "large", "--out", str(cache / "out")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "not in the groups large, left out: iris is small; omit --groups to run all",
        "nothing to do: none of the requested sets is in the groups large",
    ]
    assert command.main(["--models", "DT", "--groups", "large", "--out", str(cache / "out")]) == 2
    assert "none of the available sets is in the groups large" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--report"], ["--models", "DT"]])
def test_no_sets_and_no_folder_are_one_line(cache, capsys, monkeypatch, arguments):
    (cache / "file").write_text("")
    assert command.main([*arguments, "--out", str(cache / "file" / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cannot read or write ")
    assert error.endswith("; choose another folder with --out\n")
    assert error.count("\n") == 1
    monkeypatch.setenv("TARTREE_DATA", str(cache / "nothing"))
    sets.summaries.cache_clear()
    assert command.main([*arguments, "--out", str(cache / "out")]) == 2
    assert capsys.readouterr().err == (
        f"there are no UCI sets in {cache / 'nothing'} yet; fetch them with: tartree data uci\n"
    )


def test_the_page_on_choosing_a_tree(cache, monkeypatch):
    import structure_page

    results, searches = Results(cache / "results.jsonl"), Results(cache / "searches.jsonl")
    by_set = {"iris": [0.5] * 4, "wine": [0.7] * 4, "monks-1": [0.9] * 4}
    for name in {name for changes in structure_page.CHANGES.values() for _, *pair in changes for name in pair}:
        raised = {
            member: [run + 0.01 * len(member) * (name == "D4-L1-multi") for run in runs]
            for member, runs in by_set.items()
        }
        results.append(accuracies(name, **raised))
    page = cache / "page.md"
    marks = "\n".join(f"<!-- {name}: begin -->old<!-- {name}: end -->" for name in ("numbers", "searches"))
    page.write_text(f"before\n{marks}\nafter\n")
    readme = cache / "readme.md"
    readme.write_text("<!-- means: begin -->old<!-- means: end -->")
    monkeypatch.setattr(structure_page, "PAGE", page)
    monkeypatch.setattr(structure_page, "README", readme)
    monkeypatch.setattr(structure_page, "SPEED", cache / "none.json")
    structure_page.write(searches, results)
    text = page.read_text()
    error = np.std([4, 4, 7], ddof=1) / 3**0.5
    assert f"| all | 3 | +5.0 ± {error:.1f} (3 : 0) | -5.0 ± {error:.1f} (0 : 3) | +0.0 ± 0.0 (0 : 0) |" in text
    assert "| 10,000 and more | 0 | - | - | - |" in text
    assert structure_page.NOT_RUN in text
    assert structure_page.NOT_RUN in readme.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_critical_differences():
    """Two models: that of a normal distribution. More: the quantiles of Demsar's Table 5."""
    assert ranks.critical_difference(2, 30) == pytest.approx(stats.norm.ppf(0.975) * (2 * 3 / (6 * 30)) ** 0.5)
    for n_models, n_sets, quantile in ((4, 24, 2.569), (10, 120, 3.164)):
        expected = quantile * (n_models * (n_models + 1) / (6 * n_sets)) ** 0.5
        assert ranks.critical_difference(n_models, n_sets) == pytest.approx(expected, abs=5e-4)
    assert ranks.critical_difference(4, 24) == pytest.approx(0.957, abs=1e-3)


def test_ranks_differ_where_they_should():
    better = np.array([[3.0] * 30, [2.0] * 30, [2.0] * 30])
    ranking = ranks.rank(["a", "b", "c"], better)
    assert ranking.means.tolist() == [1.0, 2.5, 2.5]
    assert ranks.groups(ranking) == [(1, 2)]
    assert ranking.p_value < 1e-4
    with pytest.raises(ValueError, match="got 2 and 30"):
        ranks.rank(["a", "b"], better[:2])


def test_processes_share_the_work(cache, capsys):
    arguments = ["--models", "DT", "D2-L1-single", "--epochs", "2", "--out", str(cache / "out"), "--processes", "2"]
    assert command.main(arguments) == 0
    assert "[6/6]" in capsys.readouterr().out
    assert len(Results(cache / "out" / "results.jsonl").read(epochs=2)) == 6


def test_the_death_of_a_process_is_an_error():
    with pytest.raises(RuntimeError, match="a process died while working on 3"):
        list(call_in_processes(os._exit, [3], 1))
