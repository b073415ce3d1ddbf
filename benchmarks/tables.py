"""Default estimators on real tables, compared with linear models, forests and boosting on the same encoding.

    python benchmarks/tables.py run regression FOLDER      # FOLDER/*.tsv.gz, the column `target` last
    python benchmarks/tables.py run mixed FOLDER           # FOLDER/*.csv.gz, targets as in MIXED below
    python benchmarks/tables.py run regression FOLDER --models tartree --most-rows 2000
    python benchmarks/tables.py run regression FOLDER --models tartree --again     # after a change of the library
    python benchmarks/tables.py page                       # docs/benchmarks/tables.md from the saved fits

Five folds, two seeds, default parameters, the same folds for all. A line of `tables.jsonl` is one fit; a run that was
stopped resumes, and `--part 0/2` and `--part 1/2` share the tables between two processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata
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
from toolkit.environment import versions
from toolkit.markdown import table as markdown_table
from toolkit.record import beside

from tartree import TartClassifier, TartRegressor
from tartree.table import TableEncoder

OUT = Path("docs/benchmarks/tables")
SEEDS = 2
FOLDS = 5
OURS = "tartree"
SOFT = "not readable"
LINEAR = "linear"
NAMES = (OURS, SOFT, LINEAR, "gradient boosting", "random forest", "extra trees")
LOW = 0.05  # a fold is listed when tartree is lower by more
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
    """Yield the tables of a folder, small files first."""
    for path in sorted(folder.glob("*.tsv.gz" if kind == "regression" else "*.csv.gz"), key=lambda p: p.stat().st_size):
        name = path.name.split(".")[0]
        rows = pd.read_csv(path, sep="\t" if kind == "regression" else ",")
        target = "target" if kind == "regression" else MIXED[name]
        rows = rows[rows[target].notna()].reset_index(drop=True)
        yield Table(kind, name, rows.drop(columns=target), rows[target].to_numpy(), name in CLASSES)


def models(is_classes: bool, seed: int) -> dict[str, Any]:
    """Return unfitted models by name; all but those of tartree get the encoding of `TableEncoder`."""
    if is_classes:
        others: dict[str, Any] = {
            LINEAR: LogisticRegression(max_iter=5000),
            "random forest": RandomForestClassifier(random_state=seed),
            "extra trees": ExtraTreesClassifier(random_state=seed),
            "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
        }
        ours: dict[str, Any] = {
            OURS: TartClassifier(random_state=seed),
            SOFT: TartClassifier(readable=False, random_state=seed),
        }
    else:
        others = {
            LINEAR: RidgeCV(np.logspace(-3, 4, 22)),
            "random forest": RandomForestRegressor(random_state=seed),
            "extra trees": ExtraTreesRegressor(random_state=seed),
            "gradient boosting": HistGradientBoostingRegressor(random_state=seed),
        }
        ours = {
            OURS: TartRegressor(random_state=seed),
            SOFT: TartRegressor(readable=False, random_state=seed),
        }
    return {**ours, **{name: make_pipeline(TableEncoder(), model) for name, model in others.items()}}


def score(model: Any, X: pd.DataFrame, y: np.ndarray, is_classes: bool) -> float:
    """Return R2, or the area under the ROC curve (with several classes, the mean of one against the rest)."""
    if not is_classes:
        return float(r2_score(y, model.predict(X)))
    shares = model.predict_proba(X)
    if shares.shape[1] == 2:
        return float(roc_auc_score(y == model.classes_[1], shares[:, 1]))
    return float(roc_auc_score(y, shares, multi_class="ovr"))


def run(
    kind: str,
    folder: Path,
    out: Path,
    part: int = 0,
    parts: int = 1,
    seconds: float = float("inf"),
    names: Sequence[str] = NAMES,
    most_rows: float = float("inf"),
) -> None:
    """Fit the named models where they have no line yet; start no fit after `seconds`."""
    start = time.perf_counter()
    done = {(r["table"], r["model"], r["seed"], r["fold"]) for r in read(out)}
    out.parent.mkdir(parents=True, exist_ok=True)
    for seed, (number, table) in itertools.product(range(SEEDS), enumerate(tables(kind, folder))):
        if number % parts != part or len(table.y) > most_rows:
            continue
        folds = (StratifiedKFold if table.is_classes else KFold)(FOLDS, shuffle=True, random_state=seed)
        for fold, (train, test) in enumerate(folds.split(table.X, table.y)):
            for name, model in models(table.is_classes, seed).items():
                if name not in names or (table.name, name, seed, fold) in done:
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
                if name == OURS:
                    line["numbers"] = model.reading_size_.numbers
                with out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        print(f"{table.name}, seed {seed}: {time.perf_counter() - start:.0f} s", flush=True)


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def forget(kind: str, out: Path, names: Sequence[str]) -> None:
    """Remove the lines of models on tables of a kind, so that they are fitted again."""
    kept = [line for line in read(out) if line["kind"] != kind or line["model"] not in names]
    out.write_text("".join(json.dumps(line) + "\n" for line in kept))


def page(lines: list[dict[str, Any]]) -> str:
    """Return the results in Markdown."""
    text = [
        "# Real tables",
        "",
        f"Default parameters, {FOLDS} folds, {SEEDS} seeds, the same folds for all models. The linear model is ridge",
        "regression with its penalty chosen by cross-validation, or logistic regression. All other models get the",
        "encoding of `TableEncoder`; forests have 100 trees, boosting is scikit-learn's `HistGradientBoosting`.",
        "`not readable` is an estimator of tartree with `readable=False`; a dash means not run.",
        "Made by `benchmarks/tables.py`; the data is in `tables.jsonl`.",
    ]
    for kind, title in TITLES.items():
        of_kind = [line for line in lines if line["kind"] == kind]
        if of_kind:
            text += [
                "",
                f"## {title}",
                "",
                *_table(of_kind),
                *_sizes(of_kind),
                *_incomplete(of_kind),
                "",
                *_low_folds(of_kind),
            ]
    return "\n".join([*text, "", versions() + ".", ""])


def _table(lines: list[dict[str, Any]]) -> list[str]:
    """Return the mean scores of each table and model, and means of the tables on which all models were measured."""
    names = [name for name in NAMES if any(line["model"] == name for line in lines)]
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    facts: dict[str, dict[str, Any]] = {}
    for line in lines:
        scores[line["table"], line["model"]].append(line["score"])
        facts[line["table"]] = line
    order = sorted(facts, key=lambda name: (facts[name]["metric"], facts[name]["rows"]))
    means = np.array([[np.mean(scores.get((table, name), np.nan)) for name in names] for table in order])
    rows = []
    for table, values in zip(order, means, strict=True):
        fact = facts[table]
        rows.append([table, f"{fact['rows']:,} x {fact['columns']}", fact["metric"], *_cells(values)])
    measured = np.isfinite(means)
    for kept in dict.fromkeys(map(tuple, (measured.all(axis=0), np.ones(len(names), dtype=bool)))):
        complete = measured[:, kept].all(axis=1)  # first the models of all tables, then all models
        if complete.any():
            some = np.where(kept, means[complete], np.nan)
            ranks = rankdata(-some[:, kept], axis=1).mean(axis=0)
            of_tables = f"of {complete.sum()} tables"
            rows.append([f"mean {of_tables}", "", "", *_numbers(some.mean(axis=0), 3)])
            all_ranks = np.full(len(names), np.nan)
            all_ranks[list(kept)] = ranks
            rows.append([f"mean rank {of_tables}", "", "", *_numbers(all_ranks, 2)])
    return markdown_table(["table", "rows x columns", "metric", *names], rows)


def _cells(values: np.ndarray) -> list[str]:
    """Return the means of a table, the best in bold, and a dash where nothing was measured."""
    best = np.nanmax(values)
    return [f"**{t}**" if v == best else t for v, t in zip(values, _numbers(values, 3), strict=True)]


def _numbers(values: np.ndarray, digits: int) -> list[str]:
    return [f"{value:.{digits}f}" if np.isfinite(value) else "-" for value in values]


def _sizes(lines: list[dict[str, Any]]) -> list[str]:
    """State how much there is to read in the models of tartree by default."""
    counts: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        if line.get("numbers") is not None:
            counts[line["table"]].append(line["numbers"])
    if not counts:
        return []
    means = [float(np.mean(numbers)) for numbers in counts.values()]
    spread = f"{min(means):.0f} to {max(means):.0f} by table, {np.mean(means):.0f} in the mean of {len(means)} tables"
    return ["", f"Numbers to read in a model of tartree: {spread}."]


def _incomplete(lines: list[dict[str, Any]]) -> list[str]:
    """Name the tables with fewer folds than the others, because a run was stopped."""
    text = []
    for name in (OURS, SOFT):
        counts = Counter(line["table"] for line in lines if line["model"] == name)
        short = [f"{table} ({count})" for table, count in counts.items() if count < FOLDS * SEEDS]
        if short:
            text += ["", f"{name} was measured on fewer than {FOLDS * SEEDS} folds: {', '.join(short)}."]
    return text


def _low_folds(lines: list[dict[str, Any]]) -> list[str]:
    """List folds where tartree is below the better of the linear model and a constant, with the best other model."""
    scores: dict[tuple[str, int, int], dict[str, float]] = defaultdict(dict)
    for line in lines:
        scores[line["table"], line["seed"], line["fold"]][line["model"]] = line["score"]
    constants = {line["table"]: 0.5 if line["metric"] == "AUC" else 0.0 for line in lines}
    folds = []  # how much higher than the reference, fold, and scores of the models
    for fold, by_model in scores.items():
        if OURS in by_model and LINEAR in by_model:
            folds.append((by_model[OURS] - max(by_model[LINEAR], constants[fold[0]]), fold, by_model))
    low = sorted((entry for entry in folds if entry[0] < -LOW), key=lambda entry: entry[:2])
    text = [
        f"In {len(low)} of {len(folds)} folds, tartree is more than {LOW} below the better of the linear model and a "
        f"constant. Its lowest score in a fold is {min(by_model[OURS] for _, _, by_model in folds):.3f}.",
    ]
    if low:
        text[-1] += " The last column shows the best other model in that fold: where it is low too, the fold is hard."
        rows = []
        for gap, (table, seed, fold), by_model in low:
            best = max((name for name in by_model if name not in (OURS, SOFT)), key=by_model.__getitem__)
            cells = [f"{by_model[OURS]:.3f}", f"{by_model[LINEAR]:.3f}", f"{-gap:.3f}"]
            rows.append([table, f"{seed}, {fold}", *cells, f"{by_model[best]:.3f} ({best})"])
        head = ["table", "seed, fold", "tartree", "linear", "below by", "best of the others"]
        text += ["", *markdown_table(head, rows)]
    differences: dict[str, list[float]] = defaultdict(list)
    for _, (table, _, _), by_model in folds:
        differences[table].append(by_model[OURS] - by_model[LINEAR])
    means = {table: float(np.mean(values)) for table, values in differences.items()}
    lowest = min(means, key=means.__getitem__)
    return [
        *text,
        "",
        f"By mean score, tartree is furthest below the linear model on {lowest}: {means[lowest]:+.3f}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("kind", nargs="?", choices=["regression", "mixed"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=OUT, help="path of the record, without an ending")
    parser.add_argument("--part", default="0/1", help="this process and the number of processes")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no fit after that time")
    parser.add_argument("--models", nargs="+", default=NAMES, choices=NAMES, metavar="MODEL")
    parser.add_argument("--most-rows", type=float, default=float("inf"), help="leave out larger tables")
    parser.add_argument("--again", action="store_true", help="remove the lines of these models first")
    arguments = parser.parse_args()
    data = beside(arguments.out, ".jsonl")
    if arguments.command == "run":
        if arguments.folder is None:
            parser.error("run needs a kind of tables and their folder")
        warnings.filterwarnings("ignore", category=FutureWarning)
        part, parts = map(int, arguments.part.split("/"))
        if arguments.again:
            forget(arguments.kind, data, arguments.models)
        run(
            arguments.kind,
            arguments.folder,
            data,
            part,
            parts,
            arguments.limit_seconds,
            arguments.models,
            arguments.most_rows,
        )
        return
    beside(arguments.out, ".md").write_text(page(read(data)))


if __name__ == "__main__":
    main()
