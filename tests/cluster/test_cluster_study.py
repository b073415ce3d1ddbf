"""The study on UCI sets, run on a cluster by its command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

from uci import command

from tartree.datasets import fetch_uci
from tests.benchmarks.conftest import blobs, clear_caches
from tests.datasets.conftest import make_tar

FOLDER = Path(__file__).parents[2] / "benchmarks" / "uci"


def read(path):
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    return sorted((line["model"], line["set"], line["accuracy"]) for line in lines)


def test_the_study_on_a_cluster_gives_the_lines_of_one_process(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("TARTREE_DATA", str(tmp_path / "data"))
    fetch_uci(make_tar(tmp_path / "data.tar.gz", {**blobs("iris", 40, 0), **blobs("wine", 60, 1)}))
    clear_caches()
    options = ["--models", "DT", "LR", "--sets", "iris", "wine", "--threads", "2", "--out"]
    assert command.main([*options, str(tmp_path / "here")]) == 0
    clear_caches()
    # In a separate process, because it sends its modules to the nodes when it connects.
    called = [sys.executable, str(FOLDER), *options, "there", "--cluster", cluster.address]
    done = subprocess.run(called, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = read(tmp_path / "there" / "results.jsonl")
    assert lines == read(tmp_path / "here" / "results.jsonl")
    assert len(lines) == 4
