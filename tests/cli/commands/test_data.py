"""`tartree data uci`: what is printed, when it fetches, and how it fails."""

import json
import shlex
import subprocess
import sys

import pytest

from tartree.cli.commands import data
from tartree.cli.rendering.notes import Notes
from tests.cli.conftest import fails, run, succeed
from tests.datasets.conftest import all_files, archive, make_tar, one_file, server  # noqa: F401


def test_from_a_file(tmp_path, archive):  # noqa: F811
    text = succeed("data", "uci", "--from", archive, "--folder", tmp_path / "cache").stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["iris", "6", "2", "3", "small", "four", "below"] in rows
    assert ["monks-1", "12", "3", "3", "small", "fixed", "below"] in rows
    for piece in (
        "iris     1 of 3 classes missing from the test rows",
        "present  3 sets: 0 large, 0 medium, 3 small",
        "missing  abalone, acute-inflammation,",
        "odd      3 sets; the notes above say why",
        "source   data.tar.gz, sha256",
    ):
        assert piece in text
    again = succeed("data", "uci", "--list", "--folder", tmp_path / "cache").stdout
    assert again == text


def test_json(tmp_path, archive, monkeypatch):  # noqa: F811
    monkeypatch.setenv("TARTREE_DATA", str(tmp_path / "cache"))
    result = succeed("data", "uci", "--from", archive, "--json")
    found = json.loads(result.stdout)
    assert result.stderr == ""
    assert found["sets"][0] == {
        "name": "iris",
        "rows": 6,
        "features": 2,
        "classes": 3,
        "group": "small",
        "splits": "four",
        "notes": ["1 of 3 classes missing from the test rows"],
    }
    assert len(found["missing"]) == 118
    assert (found["failed"], found["others"], found["skipped"]) == ({}, [], [])
    assert found["groups"] == {"large": 0, "medium": 0, "small": 3}
    assert (found["folder"], len(found["sha256"])) == (str(tmp_path / "cache"), 64)


def test_broken_and_other_sets(tmp_path):
    files = {**one_file("mine"), "zoo/zoo.txt": b"n_arquivos= 9\n", "/etc/x.txt": b""}
    path = make_tar(tmp_path / "a.tar", files, mode="w")
    text = succeed("data", "uci", "--from", path, "--folder", tmp_path).stdout
    for piece in (
        "failed  zoo: n_arquivos must be 1 or 2, got 9",
        "not among the 121: mine",
        "left out  /etc/x.txt: its path is outside the archive",
        "present   1 set: 0 large",
    ):
        assert piece in text


def test_fewer_sets_in_place_of_more(tmp_path, archive):  # noqa: F811
    fewer = make_tar(tmp_path / "fewer.tar", {**one_file("wine"), **one_file("zoo")}, mode="w")
    assert "replaced" not in succeed("data", "uci", "--from", archive, "--folder", tmp_path).stdout
    text = succeed("data", "uci", "--from", fewer, "--folder", tmp_path).stdout
    assert "present   2 sets: 0 large" in text
    assert "replaced  3 sets from data.tar.gz; no longer present: iris, monks-1" in text
    assert "replaced" not in succeed("data", "uci", "--list", "--folder", tmp_path).stdout
    found = json.loads(succeed("data", "uci", "--from", archive, "--folder", tmp_path, "--json").stdout)
    assert found["replaced"] == {"source": "fewer.tar", "sets": 2, "gone": ["zoo"]}


def test_a_damaged_cache(tmp_path, archive, server):  # noqa: F811
    succeed("data", "uci", "--from", archive, "--folder", tmp_path)
    (tmp_path / "uci" / "index.json").write_text("{")
    result = run("data", "uci", "--list", "--folder", tmp_path)
    assert result.exit_code == 1
    assert f"Error: the UCI sets in {tmp_path} are damaged: " in result.stderr
    again = succeed("data", "uci", "--url", server.url, "--folder", tmp_path)
    assert f"{tmp_path / 'uci' / 'index.json'} cannot be read; all sets are fetched anew." in again.stderr
    assert "present  3 sets" in again.stdout


def test_download_once(tmp_path, server):  # noqa: F811
    first = succeed("data", "uci", "--url", server.url, "--folder", tmp_path)
    assert first.stderr == f"Downloading {server.url} ...\n"
    assert len(server.requests) == 1
    second = succeed("data", "uci", "--folder", tmp_path)
    assert second.stderr == ""
    assert second.stdout == first.stdout
    assert len(server.requests) == 1


def test_the_official_address_by_default(tmp_path, server, monkeypatch):  # noqa: F811
    monkeypatch.setattr("tartree.datasets.OFFICIAL_URL", server.url)
    assert server.url in succeed("data", "uci", "--folder", tmp_path).stdout


def test_bars(archive, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(Notes, "shows_progress", True)
    with data._progress_bars(Notes()) as show:
        show("download", 0, None)
        show("download", 10, 2_000_000)
        show("unpack", 1, 3)
    succeed("data", "uci", "--from", archive, "--folder", tmp_path)


def test_errors(tmp_path, server):  # noqa: F811
    nothing = tmp_path / "nothing"
    fails(
        f"there are no UCI sets in {nothing} yet; fetch them with: "
        f"tartree data uci --folder {shlex.quote(str(nothing))}",
        *("data", "uci", "--list", "--folder", nothing),
    )
    fails(f"{nothing}: No such file or directory", "data", "uci", "--from", nothing, "--folder", tmp_path)
    server.statuses = [404]
    fails(
        f"{server.url} cannot be downloaded: the server answered 404 Not Found; "
        "give another address or an archive of your own",
        *("data", "uci", "--url", server.url, "--folder", tmp_path),
    )
    for arguments in (["--list", "--url", "x"], ["--list", "--from", "x"], ["--from", "x", "--url", "y"]):
        assert run("data", "uci", *arguments).exit_code == 2
    (tmp_path / "file").write_text("")
    result = run("data", "uci", "--from", "x", "--folder", tmp_path / "file")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["data", "--help"], ["data", "uci", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    program = (
        "import sys\n"
        "from tartree.cli import main\n"
        "try:\n"
        f"    main({arguments})\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "assert not {'torch', 'pyarrow', 'rich', 'tartree.datasets'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "uci" in done.stdout
