"""Warm starts on the UCI sets: runs resume, earlier results stay, and the page states what is missing."""

from argparse import Namespace

import pytest
import torch
import zoo_page
import zoo_warm

from tartree.datasets import fetch_uci, uci_index
from tests.benchmarks.conftest import blobs
from tests.datasets.conftest import make_tar


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("TARTREE_DATA", str(tmp_path / "data"))
    fetch_uci(make_tar(tmp_path / "sets.tar", {**blobs("one", 60, 0), **blobs("two", 80, 1)}))
    settings = {"groups": ["small"], "splits": 2, "device": "cpu", "processes": 1, "limit_seconds": None}
    threads = torch.get_num_threads()
    yield Namespace(**settings, retry=False, out=tmp_path / "zoo")
    torch.set_num_threads(threads)


def test_a_stopped_run_resumes(arguments, monkeypatch):
    done = []

    def counted(job, device, versions, measure_split=zoo_warm.measure_split):
        done.append(job)
        if len(done) == 2:
            raise zoo_warm.TimeIsUp
        return measure_split(job, device, versions)

    monkeypatch.setattr(zoo_warm, "measure_split", counted)
    arguments.limit_seconds = 600
    first = zoo_warm.measure(arguments, {}, "v1")
    assert first == {"groups": {}, "sets": []}  # a set counts when all of its splits are done
    entry = zoo_warm.measure(arguments, first, "v2")
    assert sorted(done) == [("one", 0), ("one", 1), ("two", 0), ("two", 1), ("two", 1)]  # the largest set first
    assert done[0] == ("two", 0)
    group = entry["groups"]["small"]
    assert (group["sets"], group["of"], group["splits"], group["versions"]) == (2, 2, 2, "v1; v2")
    assert 0.5 < group["cart"] <= 1
    assert zoo_warm.measure(arguments, entry, "v3") == entry
    assert len(done) == 5


def test_earlier_entries_stay_and_missing_sets_are_counted(arguments):
    scores = {"cart": 0.5, "soft": 0.6, "warm": 0.7}
    entry = {"data": "two", "group": "small", "splits": 4, "versions": "v0", **scores, "notes": []}
    results = zoo_warm.Results(arguments.out.with_name("zoo-warm.jsonl"))
    summary = zoo_warm.summary(results, uci_index().sets, {"sets": [entry]}, 4)
    assert summary["sets"] == [entry]
    assert summary["groups"]["small"] == {"sets": 1, "of": 2, "splits": 4, **scores, "versions": "v0"}
    assert "| 1 of 2 small | 4 | 50.00 % | 60.00 % | 70.00 % |" in zoo_page.warm({"warm": summary})
    measured = zoo_warm.measure(arguments, summary, "v1")["sets"]  # over two splits
    assert [(row["data"], row["splits"]) for row in measured] == [("one", 2), ("two", 4)]


def test_a_failure_is_recorded_and_run_again_with_retry(arguments, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(zoo_warm.zoo, "soften", lambda *arguments, **settings: int("no"))
        assert zoo_warm.measure(arguments, {}, "v1")["sets"] == []
    lines = zoo_warm.Results(arguments.out.with_name("zoo-warm.jsonl")).read().values()
    assert {line["failure"][:10] for line in lines} == {"ValueError"}
    assert zoo_warm.measure(arguments, {}, "v1")["sets"] == []
    arguments.retry = True
    assert len(zoo_warm.measure(arguments, {}, "v1")["sets"]) == 2
