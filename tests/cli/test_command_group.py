"""The command as a process: start, help, exit codes, pipes."""

import os
import pkgutil
import re
import subprocess
import sys

import pytest

from tartree import __version__
from tartree.cli import commands, main
from tartree.cli.workflow import file_fit
from tests.cli.conftest import fails, run, succeed
from tests.suggestions import check_suggestions, parse

COMMAND = [sys.executable, "-m", "tartree.cli"]


def test_help_imports_nothing_heavy():
    program = (
        "import sys\n"
        "from tartree.cli import main\n"
        "for arguments in (['--help'], ['fit', '--help'], ['predict', '--help'], ['--version']):\n"
        "    try:\n"
        "        main(arguments)\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 0\n"
        "print('heavy:', {'torch', 'sklearn', 'pyarrow', 'pandas', 'scipy', 'rich', 'narwhals'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: set()"
    assert f"tartree, version {__version__}" in done.stdout
    assert done.stderr == ""


def test_every_command_has_help():
    for name, command in main.commands.items():
        text = succeed(name, "--help").stdout
        assert command.help.splitlines()[0] in text
        assert all(not option.name.startswith("_") for option in command.params)


def test_every_module_of_the_commands_is_in_the_list():
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)}
    assert {entry.command.name for entry in commands.COMMANDS} == modules


def test_commands_in_the_help_can_be_parsed():
    text = succeed("--help").stdout
    found = [re.split(" {2,}", line.strip())[0] for line in text.splitlines() if line.startswith("  tartree ")]
    assert {command.split()[1] for command in found} == set(main.commands)
    for command in found:
        parse(command)


def test_a_suggestion_that_cannot_be_parsed_is_noticed():
    assert check_suggestions("Next:\n  tartree inspect 'a b.tart'\nNote: try: tartree zoo --json\n") == [
        "tartree inspect 'a b.tart'",
        "tartree zoo --json",
    ]
    with pytest.raises(AssertionError, match="No such option"):
        check_suggestions("  tartree inspect model.tart --rows 3")
    with pytest.raises(AssertionError, match="must end its line"):
        check_suggestions("tartree inspect model.tart shows it")


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["fit", "x.csv"], ["fit", "x.csv", "--target", "y", "--depth", "-1"]]
)
def test_usage_errors(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_a_process_reads_and_writes_pipes(patients_csv, model_path):
    done = subprocess.run(
        [*COMMAND, "predict", model_path, "-"], input=patients_csv.read_bytes(), capture_output=True, check=True
    )
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 61
    assert lines[0] == "age,crp,sex,visit,diagnosis,prediction,probability_benign,probability_malignant"
    assert done.stderr == b""


def test_an_error_is_one_line(tmp_path):
    done = subprocess.run([*COMMAND, "inspect", tmp_path / "none.tart"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"Error: {tmp_path / 'none.tart'}: No such file or directory\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
def test_a_broken_pipe_is_silent(patients_csv, model_path, tmp_path):
    header, _, rows = patients_csv.read_text().partition("\n")
    long = tmp_path / "long.csv"
    long.write_text(header + "\n" + rows * 200)
    program = subprocess.Popen(
        [*COMMAND, "predict", model_path, long, "--chunk-rows", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout.readline().startswith(b"age,crp")
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == 141


def test_interrupt(monkeypatch, patients_csv):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(file_fit, "fit_file", interrupted)
    result = run("fit", patients_csv, "--target", "diagnosis")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"


@pytest.mark.parametrize("arguments", [["--debug", "fit"], ["fit", "--debug"]])
def test_unexpected_errors_have_a_traceback_on_demand(monkeypatch, patients_csv, arguments):
    def broken(*arguments):
        raise RuntimeError("something\nis wrong")

    monkeypatch.setattr(file_fit, "fit_file", broken)
    fails(
        "RuntimeError: something is wrong; this is not expected: run again with --debug to see where it comes from",
        *("fit", patients_csv, "--target", "diagnosis"),
    )
    result = run(*arguments, patients_csv, "--target", "diagnosis")
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
