"""`tartree demo`: everything it promises is there, and the commands it prints work."""

import csv
import shlex

from tartree import load
from tartree.cli.commands.demo import run_demo
from tests.cli.conftest import fails, succeed
from tests.suggestions import check_suggestions


def test_demo(tmp_path, capsys):
    folder = tmp_path / "my demo"
    run_demo(str(folder), epochs=3)
    printed = capsys.readouterr()
    assert printed.err == "Learning from 469 tumours, each with 30 measurements ...\n"
    names = ["breast-cancer.csv", "breast-cancer.tart", "new-patients.csv", "predictions.csv", "summary.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        assert str(folder / name) in printed.out
    assert "5-fold cross-validation, 469 rows" in (folder / "summary.txt").read_text(encoding="utf-8")
    assert load(folder / "breast-cancer.tart").classes_.tolist() == ["benign", "malignant"]
    with (folder / "predictions.csv").open(newline="") as file:
        predicted = list(csv.DictReader(file))
    assert len(predicted) == 100
    right = sum(row["prediction"] == row["diagnosis"] for row in predicted)
    assert f"Of 100 other tumours, the model names {right} rightly." in printed.out
    assert right > 80

    commands = [shlex.split(line) for line in check_suggestions(printed.out)]
    assert [command[1] for command in commands] == ["fit", "predict", "inspect"]
    succeed(*commands[0][1:], "--epochs", 1, "--no-compare")
    for command in commands[1:]:
        succeed(*command[1:])


def test_a_file_in_the_way(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    fails(f"{taken} is a file; give the name of a directory to --out", "demo", "--out", taken)
