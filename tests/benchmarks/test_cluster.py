"""The cost model of `benchmarks/cluster.py`: its constants are the measured ones, and its page states its error."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = runpy.run_path(str(ROOT / "benchmarks/cluster.py"))
BATCH, ROWS = 1000, 25_000
STEPS = ROWS // BATCH
ROW, PARAMETER = 1e-6, 1e-9  # seconds
PARAMETERS = {"small": 1000, "large": 16_000}


def seconds(parameters, workers=1, step=0.0):
    return ROWS / workers * (ROW + PARAMETER * parameters) + STEPS * step


def measured(each_step):
    """What would have been measured if a step cost this beyond its rows, by model and workers."""
    alone = {
        name: {"processor_s": seconds(count), "epoch_s": 1.0, "parameters": count} for name, count in PARAMETERS.items()
    }
    fits = [
        {"model": name, "workers": k, "processor_s": seconds(PARAMETERS[name], k, each_step[name].get(k, 0.0))}
        for name in PARAMETERS
        for k in (1, 2, 4)
    ]
    return {
        "rows": ROWS,
        "batch": BATCH,
        "alone": alone,
        "reading": {"processor_s": seconds(25), "parameters": 25},
        "fits": [fit | {"epoch_s": 1.0, "beside_s": 1.0} for fit in fits],
        "reductions": [],
    }


def cells(lines):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def test_each_model_has_a_constant():
    results = measured({"small": {2: 1e-3, 4: 1e-3}, "large": {2: 7e-3, 4: 7e-3}})
    costs = BENCHMARK["CostModel"](results)
    assert costs.each_step == pytest.approx({"small": 1e-3, "large": 7e-3})
    for fit in results["fits"]:
        assert costs.processor(fit["model"], fit["workers"]) == pytest.approx(fit["processor_s"])


def test_the_table_compares_computed_with_measured():
    tables = BENCHMARK["tables"](measured({"small": {2: 1e-3, 4: 3e-3}, "large": {2: 7e-3, 4: 7e-3}}))
    header, _, *lines = cells(tables["measured"])
    assert header[3:5] == ["core busy, of one process", "computed"]
    by_row = {(line[0], line[2]): line[3:5] for line in lines}
    # A step of the small one is 2 ms alone, and takes 1 + 1 and 0.5 + 3 ms; with the mean of 1 and 3, 3 and 2.5.
    assert by_row["small", "2"] == ["100 %", "150 %"]
    assert by_row["small", "4"] == ["175 %", "125 %"]
    assert by_row["small", "one process"] == ["100 %", "100 %"]
    assert by_row["large", "4"][0] == by_row["large", "4"][1]
    assert "up to 50 points for small and 0 for large" in tables["measured"][-1]
    sentences = " ".join(tables["costs"])
    assert "small 2.0 ms (1.0 with 2 workers, 3.0 with 4), large 7.0 ms (7.0 with 2 workers, 7.0 with 4)" in sentences
    assert "It grows with the workers for small, so the figures computed" in sentences
    tables = BENCHMARK["tables"](measured({"small": {2: 3e-3, 4: 1e-3}, "large": {2: 7e-3, 4: 7e-3}}))
    assert "It grows" not in " ".join(tables["costs"])


def test_the_page_is_made_from_the_record():
    results = json.loads((ROOT / "docs/benchmarks/cluster.json").read_text())
    page = (ROOT / "docs/scaling.md").read_text()
    for name, lines in BENCHMARK["tables"](results).items():
        assert "\n".join([f"<!-- cluster: {name} -->", "", *lines, "", "<!-- end -->"]) in page
