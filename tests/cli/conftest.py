"""Small tables in files, a model fitted to one of them, and a way to run commands."""

import csv
import random
from inspect import signature

import pytest
from click.testing import CliRunner

from tartree.cli import main
from tests.suggestions import check_suggestions

HEADER = ["age", "crp", "sex", "visit", "diagnosis"]


def patients(n_rows=60, seed=0):
    """Rows as text; the diagnosis follows from age and crp."""
    draw = random.Random(seed)
    rows = []
    for number in range(n_rows):
        age, crp, sex = draw.randint(20, 90), round(draw.expovariate(0.1), 1), draw.choice(["f", "m"])
        sick = "malignant" if age / 10 + crp > 14 else "benign"
        visit = f"2021-{number % 12 + 1:02d}-{number % 28 + 1:02d}"
        rows.append([str(age), str(crp) if number % 9 else "", sex, visit, sick])
    return rows


def write_csv(path, rows, header=HEADER, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return path


# click before 8.2 mixes standard error into standard output unless it is told not to; later ones have no such option.
SEPARATE = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def run(*arguments, stdin=None):
    """Run a command; whatever commands it suggests must be such that they can be parsed."""
    result = CliRunner(**SEPARATE).invoke(main, [str(argument) for argument in arguments], input=stdin)
    if "--help" not in arguments and "--json" not in arguments:
        check_suggestions(result.stderr)
        if result.exit_code or arguments[0] != "predict":  # which prints rows
            check_suggestions(result.stdout)
    return result


def succeed(*arguments, stdin=None):
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def fails(message, *arguments, stdin=None, code=1):
    """The command ends with this message in one line, the last one, and nothing on standard output."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    assert result.stderr.splitlines()[-1] == f"Error: {message}"
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="session")
def workplace(tmp_path_factory):
    return tmp_path_factory.mktemp("a folder")  # with a space: commands that are printed must quote it


@pytest.fixture(scope="session")
def patients_csv(workplace):
    return write_csv(workplace / "patients.csv", patients())


@pytest.fixture(scope="session")
def model_path(workplace, patients_csv):
    path = workplace / "model.tart"
    succeed("fit", patients_csv, "--target", "diagnosis", "--out", path, "--epochs", 5, "--no-compare")
    return path
