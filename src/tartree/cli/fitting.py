"""`tartree fit`: from a file to a saved model."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from tartree.cli.comparing import Comparison, compare
from tartree.cli.notes import Notes
from tartree.cli.preparing import check_columns, look_at_columns, prepare
from tartree.cli.reading import open_stream, open_table
from tartree.cli.targets import Target, Task, read_target
from tartree.cli.writing import check_out

PARAMETERS = ("depth", "window", "stride", "members", "selection", "epochs")


#: With fewer steps of training a model has hardly begun to learn.
FEW_STEPS = 150


@dataclass(frozen=True)
class Settings:
    """The options of `tartree fit`, but for the data and the target."""

    out: str = "model.tart"
    force: bool = False
    task: Literal["auto"] | Task = "auto"
    drop: tuple[str, ...] = ()
    drop_missing_target: bool = False
    preset: str | None = None
    depth: int | None = None
    window: int | None = None
    stride: int | None = None
    members: int | None = None
    selection: str | None = None
    epochs: int | None = None
    seed: int = 0
    folds: int = 5
    no_compare: bool = False
    stream: bool | None = None
    cluster: str | None = None
    workers: int | None = None
    storage: str | None = None

    def cluster_options(self) -> dict[str, Any] | None:
        """How to fit on a cluster; None: not at all."""
        if self.cluster is None:
            return None
        return {"address": self.cluster, "workers": self.workers, "storage": self.storage}

    def make_estimator(self, task: Task, verbose: int) -> Any:
        parameters = {name: getattr(self, name) for name in PARAMETERS if getattr(self, name) is not None}
        parameters |= {"random_state": self.seed, "verbose": verbose}
        if self.preset is not None:
            from tartree import zoo

            return zoo.make(self.preset, task=task, **parameters)
        from tartree import TartClassifier, TartRegressor

        return (TartClassifier if task == "classification" else TartRegressor)(**parameters)


@dataclass(frozen=True)
class Report:
    """What `tartree fit` has to say."""

    data: str
    n_rows: int
    columns: dict[str, int]  # how many of each kind
    target: Target
    structure: dict[str, Any]
    n_members: int
    n_leaves: int
    n_parameters: int
    comparison: Comparison | None
    seconds: float
    path: str
    interrupted: bool  # by Ctrl-C, after some epochs
    model: Any = field(repr=False)

    def to_dict(self, notes: list[str]) -> dict[str, Any]:
        """Plain data for JSON."""
        found = self.comparison
        return {
            "data": self.data,
            "rows": self.n_rows,
            "columns": self.columns,
            "target": self.target.name,
            "task": self.target.task,
            "classes": [{"class": label, "rows": count} for label, count in self.target.classes.items()],
            "structure": self.structure,
            "members": self.n_members,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "cross_validation": found
            and {
                "metric": found.metric,
                "folds": found.n_folds,
                "rows": found.n_rows,
                "scores": {
                    score.name: {
                        "mean": _finite(score.mean),
                        "sd": _finite(score.sd),
                        "folds": [_finite(value) for value in score.folds],
                        "seconds_per_fit": score.seconds,
                    }
                    for score in found.scores
                },
            },
            "seconds": self.seconds,
            "model": self.path,
            "interrupted": self.interrupted,
            "notes": notes,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fit_file(data: str, target_name: str, settings: Settings, notes: Notes) -> Report:
    """Read a table, compare models on it, fit one to all of it and save that."""
    streamed = open_stream(data, settings.stream if settings.cluster is None else True, target_name, settings.drop)
    if streamed is not None:
        return fit_streamed(streamed, data, target_name, settings, notes)
    with open_table(data, notes, target=target_name, drop=settings.drop) as source:
        check_columns(source, target_name, settings.drop)
        check_out(settings.out, "--out", settings.force)
        table, labels, raw = prepare(source, target_name, settings.drop, settings.drop_missing_target, notes)
    target = read_target(labels, raw, target_name, settings.task, notes)
    with notes.warnings():
        columns = look_at_columns(table, source.label, notes)
        _note_few_steps(settings, target.task, table.num_rows, notes)
        comparison = None
        if not settings.no_compare:
            estimator = settings.make_estimator(target.task, verbose=0)
            comparison = compare(table, target, estimator, folds=settings.folds, seed=settings.seed, notes=notes)
        model = settings.make_estimator(target.task, verbose=int(notes.shows_progress))
        started = time.perf_counter()
        model.fit(table, target.values)
        seconds = time.perf_counter() - started
    return _saved(model, source.label, table.num_rows, columns, target, comparison, seconds, settings, notes)


def fit_streamed(table: Any, data: str, target_name: str, settings: Settings, notes: Notes) -> Report:
    """Fit a model to a table that stays in its files, and save it."""
    from tartree.cli import streaming

    check_out(settings.out, "--out", settings.force)
    task = streaming.prepare(table, data, target_name, settings.drop, settings.task, notes)
    if not settings.no_compare:
        why = "" if settings.stream else f", for it has {table.n_rows:,} rows of {len(table.names)} columns"
        how = f"is streamed{why}" if settings.cluster is None else "is learnt from on a cluster"
        notes.add(f"{data} {how}: without a comparison with other models")
    with notes.warnings():
        _note_few_steps(settings, task, table.n_rows, notes)
        model = settings.make_estimator(task, verbose=int(notes.shows_progress))
        started = time.perf_counter()
        columns, target, n_rows = streaming.fit(
            model, table, target_name, task, settings.drop_missing_target, notes, settings.cluster_options()
        )
        seconds = time.perf_counter() - started
    return _saved(model, data, n_rows, columns, target, None, seconds, settings, notes)


def _saved(
    model: Any,
    label: str,
    n_rows: int,
    columns: dict[str, int],
    target: Target,
    comparison: Comparison | None,
    seconds: float,
    settings: Settings,
    notes: Notes,
) -> Report:
    """Save a fitted model; what there is to say about it."""
    model.target_name_ = target.name
    model.save(settings.out)
    interrupted = bool(model.history_.interrupted)
    if interrupted:
        notes.add(f"interrupted: {settings.out} holds what was learnt until then, not a finished model", always=True)
    return Report(
        label,
        n_rows,
        columns,
        target,
        model.structure_.to_dict(),
        model.members,
        model.structure_.n_leaves,
        model.n_parameters_,
        comparison,
        seconds,
        settings.out,
        interrupted,
        model,
    )


def _note_few_steps(settings: Settings, task: Task, n_rows: int, notes: Notes) -> None:
    """Say so where a named model takes too few steps on a table of this size to learn much."""
    if settings.preset is None or settings.epochs is not None:
        return
    recipe = settings.make_estimator(task, verbose=0).spec().recipe
    steps = recipe.epochs * recipe.n_batches(n_rows)
    if recipe.optimizer == "adam" and steps < FEW_STEPS:
        notes.add(
            f"the {recipe.epochs} epochs of {settings.preset} are {steps:,} steps of training on {n_rows:,} rows, "
            f"which is few; --epochs {-(-FEW_STEPS * recipe.epochs // steps)} takes more"
        )
