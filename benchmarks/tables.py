"""Default estimators on real tables, beside linear models, forests and boosting on the same encoding.

    python benchmarks/tables.py run regression FOLDER      # FOLDER/*.tsv.gz, the column `target` last
    python benchmarks/tables.py run mixed FOLDER           # FOLDER/*.csv.gz, targets as in MIXED below
    python benchmarks/tables.py page                       # docs/benchmarks/tables.md from what there is

Five folds, two seeds, default parameters, the same folds for all. A line of `tables.jsonl` is one fit; a run that was
stopped resumes, and `--part 0/2` and `--part 1/2` share the tables between two processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from tartree import TartClassifier, TartRegressor, __version__
from tartree.table import TableEncoder

OUT = Path("docs/benchmarks/tables")
SEEDS = 2
FOLDS = 5
OURS = "tartree"
LINEAR = "linear"
#: Targets of the mixed tables; a target in `CLASSES` is one of classes.
MIXED = {
    "bike-hours": "bikers",
    "breast-cancer-relapse": "cens",
    "caravan": "Purchase",
    "carseats": "Sales",
    "college": "Outstate",
    "diamond-cut": "cut",
    "game-revenue": "item_revenue",
    "hitters": "Salary",
    "loan-approval": "approve",
    "orange-juice": "Purchase",
    "superstore": "Profit",
    "titanic": "survived",
}
TITLES = {"regression": "Regression tables", "mixed": "Tables with categories, text, dates and missing values"}
CLASSES = {"breast-cancer-relapse", "caravan", "diamond-cut", "loan-approval", "orange-juice", "titanic"}


class Table(NamedTuple):
    """A table of one kind ("regression" or "mixed") with its target."""

    kind: str
    name: str
    X: pd.DataFrame
    y: np.ndarray
    is_classes: bool


def tables(kind: str, folder: Path) -> Iterator[Table]:
    """Tables of a folder, small ones first."""
    for path in sorted(folder.glob("*.tsv.gz" if kind == "regression" else "*.csv.gz"), key=lambda p: p.stat().st_size):
        name = path.name.split(".")[0]
        rows = pd.read_csv(path, sep="\t" if kind == "regression" else ",")
        target = "target" if kind == "regression" else MIXED[name]
        rows = rows[rows[target].notna()].reset_index(drop=True)
        yield Table(kind, name, rows.drop(columns=target), rows[target].to_numpy(), name in CLASSES)


def models(is_classes: bool, seed: int) -> dict[str, Any]:
    """Unfitted models by name; all but ours get the encoding of `TableEncoder`."""
    if is_classes:
        others: dict[str, Any] = {
            LINEAR: LogisticRegression(max_iter=5000),
            "random forest": RandomForestClassifier(random_state=seed),
            "extra trees": ExtraTreesClassifier(random_state=seed),
            "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
        }
        ours: Any = TartClassifier(random_state=seed)
    else:
        others = {
            LINEAR: RidgeCV(np.logspace(-3, 4, 22)),
            "random forest": RandomForestRegressor(random_state=seed),
            "extra trees": ExtraTreesRegressor(random_state=seed),
            "gradient boosting": HistGradientBoostingRegressor(random_state=seed),
        }
        ours = TartRegressor(random_state=seed)
    return {OURS: ours, **{name: make_pipeline(TableEncoder(), model) for name, model in others.items()}}


def score(model: Any, X: pd.DataFrame, y: np.ndarray, is_classes: bool) -> float:
    """R2, or the area under the ROC curve (of several classes the mean, one against the rest)."""
    if not is_classes:
        return float(r2_score(y, model.predict(X)))
    shares = model.predict_proba(X)
    if shares.shape[1] == 2:
        return float(roc_auc_score(y == model.classes_[1], shares[:, 1]))
    return float(roc_auc_score(y, shares, multi_class="ovr"))


def run(kind: str, folder: Path, out: Path, part: int, parts: int, seconds: float) -> None:
    """Fit what has no line yet; start no fit after so many seconds."""
    start = time.perf_counter()
    done = {(r["table"], r["model"], r["seed"], r["fold"]) for r in read(out)}
    out.parent.mkdir(parents=True, exist_ok=True)
    for seed, (number, table) in itertools.product(range(SEEDS), enumerate(tables(kind, folder))):
        if number % parts != part:
            continue
        folds = (StratifiedKFold if table.is_classes else KFold)(FOLDS, shuffle=True, random_state=seed)
        for fold, (train, test) in enumerate(folds.split(table.X, table.y)):
            for name, model in models(table.is_classes, seed).items():
                if (table.name, name, seed, fold) in done:
                    continue
                if time.perf_counter() - start > seconds:
                    return
                begin = time.perf_counter()
                model.fit(table.X.iloc[train], table.y[train])
                fitted = time.perf_counter() - begin
                line = {
                    "kind": kind, "table": table.name, "rows": len(table.y), "columns": table.X.shape[1],
                    "metric": "AUC" if table.is_classes else "R2", "model": name, "seed": seed, "fold": fold,
                    "score": round(score(model, table.X.iloc[test], table.y[test], table.is_classes), 5),
                    "fit_s": round(fitted, 2),
                }  # fmt: skip
                with out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        print(f"{table.name}, seed {seed}: {time.perf_counter() - start:.0f} s", flush=True)


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def page(lines: list[dict[str, Any]], versions: str) -> str:
    """The results in Markdown."""
    text = [
        "# Real tables",
        "",
        f"Default parameters, {FOLDS} folds, {SEEDS} seeds, the same folds for all. The linear model is ridge",
        "regression with its penalty chosen by cross-validation, or logistic regression. All models but tartree get",
        "the encoding of `TableEncoder`; forests have 100 trees, boosting is scikit-learn's `HistGradientBoosting`.",
        "Made by `benchmarks/tables.py`; its data is `tables.jsonl`.",
    ]
    for kind, title in TITLES.items():
        own = [line for line in lines if line["kind"] == kind]
        if own:
            text += ["", f"## {title}", "", *_table(own), *_missing(own), "", *_worst(own)]
    return "\n".join([*text, "", versions, ""])


def _table(lines: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(line["model"] for line in lines))
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    facts: dict[str, dict[str, Any]] = {}
    for line in lines:
        scores[line["table"], line["model"]].append(line["score"])
        facts[line["table"]] = line
    order = sorted(facts, key=lambda name: (facts[name]["metric"], facts[name]["rows"]))
    text = ["| table | rows x columns | metric | " + " | ".join(names) + " |", "|---|---|---|" + "---|" * len(names)]
    means = np.array([[np.mean(scores[table, name]) for name in names] for table in order])
    for table, row in zip(order, means, strict=True):
        cells = [f"**{value:.3f}**" if value == row.max() else f"{value:.3f}" for value in row]
        fact = facts[table]
        text.append(
            f"| {table} | {fact['rows']:,} x {fact['columns']} | {fact['metric']} | " + " | ".join(cells) + " |"
        )
    ranks = np.mean([_ranks(-row) for row in means], axis=0)
    text.append("| mean | | | " + " | ".join(f"{value:.3f}" for value in means.mean(0)) + " |")
    text.append("| mean rank | | | " + " | ".join(f"{value:.2f}" for value in ranks) + " |")
    seconds = [np.mean([line["fit_s"] for line in lines if line["model"] == name]) for name in names]
    text.append("| mean seconds of a fit | | | " + " | ".join(f"{value:.2f}" for value in seconds) + " |")
    return text


def _missing(lines: list[dict[str, Any]]) -> list[str]:
    """Tables with fewer folds than the others, because a run was stopped."""
    counts = Counter(line["table"] for line in lines if line["model"] == OURS)
    short = {table: count for table, count in counts.items() if count < FOLDS * SEEDS}
    return ["", f"With fewer than {FOLDS * SEEDS} fits so far: {short}."] if short else []


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, equal values share their mean."""
    return np.array([(values < value).sum() + ((values == value).sum() + 1) / 2 for value in values])


def _worst(lines: list[dict[str, Any]]) -> list[str]:
    """Where ours is below the better of a linear model and a constant: R2 fold by fold, AUC in the mean of a table."""
    by = {(r["table"], r["seed"], r["fold"], r["model"]): r["score"] for r in lines}
    gaps = []
    for (table, seed, fold, name), value in by.items():
        if name == OURS and (table, seed, fold, LINEAR) in by:
            least = 0.5 if any(r["metric"] == "AUC" for r in lines if r["table"] == table) else 0.0
            linear = by[table, seed, fold, LINEAR]
            gaps.append((value - max(linear, least), table, seed, fold, value, linear))
    bad = sorted(gap for gap in gaps if gap[0] < -0.05)
    text = [
        f"Of {len(gaps)} folds, tartree is more than 0.05 below the better of the linear model and a constant in "
        f"{len(bad)}; the worst score of a fold is {min(gap[4] for gap in gaps):.3f}.",
    ]
    if bad:
        text += ["", "| table | seed, fold | tartree | linear | below by |", "|---|---|---|---|---|"]
        text += [f"| {t} | {s}, {f} | {v:.3f} | {li:.3f} | {-g:.3f} |" for g, t, s, f, v, li in bad]
    means: dict[str, list[float]] = defaultdict(list)
    for _, table, _, _, value, linear in gaps:
        means[table].append(value - linear)
    lowest = min(means, key=lambda table: float(np.mean(means[table])))
    gap = float(np.mean(means[lowest]))
    text += ["", f"In the mean of a table, tartree is furthest below the linear model on {lowest}: {gap:+.3f}."]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("kind", nargs="?", choices=["regression", "mixed"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=OUT, help="without its ending")
    parser.add_argument("--part", default="0/1", help="this process of so many")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no fit after that time")
    arguments = parser.parse_args()
    data = arguments.out.with_suffix(".jsonl")
    if arguments.command == "run":
        if arguments.folder is None:
            parser.error("run needs a kind of tables and their folder")
        warnings.filterwarnings("ignore", category=FutureWarning)
        part, parts = map(int, arguments.part.split("/"))
        run(arguments.kind, arguments.folder, data, part, parts, arguments.limit_seconds)
        return
    versions = (
        f"tartree {__version__}, torch {torch.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}."
    )
    arguments.out.with_suffix(".md").write_text(page(read(data), versions))


if __name__ == "__main__":
    main()
