"""Comparisons that defaults are chosen by: sets as an estimator sees them, and held-out training rows."""

from dataclasses import replace

import defaults
import numpy as np
import pytest
import torch
from uci import defaults_report, sets, trees
from uci.results import Results

from tartree import TartClassifier
from tartree.training import RECIPES


def test_runs_are_encoded_as_an_estimator_encodes_them(cache, small):
    data = sets.load_set("wine")
    constant = data.x.clone()
    constant[data.train[1], 0] = 2.0  # of this run alone
    data = replace(data, x=torch.cat([constant, torch.ones(len(constant), 1)], dim=1))
    encoded = data.encoded()
    assert encoded.x.shape == (4 * 60, 3)  # columns that are constant in all runs are left out
    for run, (rows, test) in enumerate(zip(data.train, data.test, strict=True)):
        encoder = TartClassifier(epochs=1, readable=False).fit(data.x[rows].numpy(), data.y[rows].numpy()).encoder_
        expected = torch.from_numpy(encoder.transform(data.x.numpy()))
        kept = slice(1, 3) if run == 1 else slice(0, 3)
        for part, index in ((encoded.train[run], rows), (encoded.test[run], test)):
            assert torch.equal(encoded.x[part][:, kept], expected[index])
            assert torch.equal(encoded.y[part], data.y[index])
    assert not encoded.x[encoded.test[1], 0].any()

    fixed = sets.load_set("monks-1")
    assert fixed.encoded().x.shape == fixed.x.shape  # one table, since all runs learn from the same rows
    clean = sets.load_set("wine").encoded()
    accuracies = trees.run_tree(small, clean, ["multi"], replace(RECIPES["default"], epochs=25))["multi"]
    assert min(accuracies) > 0.6


def test_defaults_are_chosen_on_training_rows(cache, small, monkeypatch):
    data = sets.load_set("wine")
    held_out = defaults.hold_out(data)
    for run in range(4):
        both = torch.cat([held_out.train[run], held_out.test[run]])
        assert torch.equal(both.sort().values, data.train[run].sort().values)
        assert len(held_out.test[run]) == pytest.approx(len(both) / 4, abs=1)

    quick = replace(small, recipe=replace(RECIPES["default"], epochs=25))
    kinds = {"plain": replace(quick, members=2), "encoded": replace(quick, encoded=True)}
    monkeypatch.setitem(defaults.SUBJECTS, "depth", (kinds, [("plain",), ("encoded",), ("plain", "encoded")]))
    (line,) = defaults.do("wine", "depth", "cpu", "single")
    assert (line["failure"], line["rows"], line["group"]) == (None, len(held_out.train[0]), "small")
    assert list(line["accuracy"]) == ["plain", "encoded", "plain + encoded"]
    assert min(map(np.mean, line["accuracy"].values())) > 0.7

    lines = [
        {**line, "set": name, "rows": rows, "accuracy": {"D 4": [0.5, 0.5], "D 6": [0.5, 0.5 + gain]}}
        for name, rows, gain in (("a", 100, 0.0), ("b", 150, 0.04), ("c", 5000, 0.2))
    ]
    Results(cache / "depth.jsonl").append(lines)
    page = defaults_report.depths(cache)
    assert "| below 200 | 2 | +1.00 ± 1.00 |" in page
    assert "| 3,000 or more | 1 | - |" in page
