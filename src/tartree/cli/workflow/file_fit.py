"""A fit from a file to a saved model."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tartree.cli.io.parquet_input import open_stream
from tartree.cli.io.path_checks import check_output
from tartree.cli.rendering.notes import Notes
from tartree.cli.workflow.comparison import Comparison, compare
from tartree.cli.workflow.target_column import Target
from tartree.cli.workflow.training_table import TableSettings, check_kinds, inspect_columns, read_training_table

if TYPE_CHECKING:
    from tartree import TartClassifier, TartRegressor
    from tartree.model.target import Task
    from tartree.table import ParquetTable

#: Parameters of an estimator that are options of `tartree fit`.
PARAMETERS = ("readable", "depth", "max_features", "max_terms", "window", "stride", "members", "selection", "epochs")
#: Steps of training below which a model learns little.
FEW_STEPS = 150


@dataclass(frozen=True)
class FitSettings(TableSettings):
    """The options of `tartree fit`, except data and target."""

    preset: str | None = None
    readable: bool | None = None
    depth: int | None = None
    max_features: int | None = None
    max_terms: int | None = None
    window: int | None = None
    stride: int | None = None
    members: int | None = None
    selection: str | None = None
    folds: int = 5
    no_compare: bool = False
    stream: bool | None = None
    workers: int | None = None

    def cluster_options(self) -> dict[str, Any] | None:
        """Return the arguments of a fit on a cluster, or None without one."""
        if self.cluster is None:
            return None
        return {"address": self.cluster, "workers": self.workers, "storage": self.storage}

    def make_estimator(self, task: Task, verbose: int) -> TartClassifier | TartRegressor:
        """Return the unfitted estimator."""
        parameters = {name: getattr(self, name) for name in PARAMETERS if getattr(self, name) is not None}
        parameters |= {"random_state": self.seed, "verbose": verbose}
        parameters |= {"columns": self.columns} if self.columns else {}
        if self.preset is not None:
            if self.readable:
                raise ValueError(f"--readable describes a model by itself, got --preset {self.preset} beside it")
            from tartree import zoo

            return zoo.make(self.preset, task=task, **parameters)
        from tartree.estimators import ESTIMATORS

        return ESTIMATORS[task](**parameters)


@dataclass(frozen=True)
class FitReport:
    """The results of `tartree fit`."""

    data: str
    n_rows: int
    columns: dict[str, int]  # number of each kind
    target: Target
    comparison: Comparison | None
    seconds: float
    path: str
    model: TartClassifier | TartRegressor = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the training, after some epochs."""
        return bool(self.model.history_.interrupted)

    def to_dict(self, notes: list[str]) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "data": self.data,
            "rows": self.n_rows,
            "columns": self.columns,
            "column_summary": [asdict(column) for column in self.model.encoder_.summary()],
            "target": self.target.name,
            "task": self.target.task,
            "classes": [{"class": label, "rows": count} for label, count in self.target.classes.items()],
            "structure": self.model.structure_.to_dict(),
            "depth": self.model.get_depth(),
            "members": self.model.members,
            "leaves": self.model.get_n_leaves(),
            "parameters": self.model.n_parameters_,
            "reading_size": asdict(self.model.reading_size_),
            "cross_validation": None if self.comparison is None else _describe_comparison(self.comparison),
            "seconds": self.seconds,
            "model": self.path,
            "interrupted": self.interrupted,
            "notes": notes,
        }


def _describe_comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "metric": comparison.metric,
        "folds": comparison.n_folds,
        "rows": comparison.n_rows,
        "scores": {
            score.name: {
                "mean": _finite(score.mean),
                "sd": _finite(score.sd),
                "folds": [_finite(value) for value in score.folds],
                "seconds_per_fit": score.seconds,
            }
            for score in comparison.scores
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fit_file(data: str, target_name: str, settings: FitSettings, notes: Notes) -> FitReport:
    """Read a table, compare models on it, fit one to all rows and save it."""
    check_output(settings.out, "--out", settings.force)
    streamed = open_stream(data, settings.stream if settings.cluster is None else True, target_name, settings.drop)
    if streamed is not None:
        report = _fit_streamed(streamed, data, target_name, settings, notes)
    else:
        report = _fit_in_memory(data, target_name, settings, notes)
    report.model.target_name_ = target_name
    report.model.save(settings.out)
    if report.interrupted:
        notes.add(f"interrupted: {settings.out} holds what was learnt until then, not a finished model", always=True)
    return report


def _fit_in_memory(data: str, target_name: str, settings: FitSettings, notes: Notes) -> FitReport:
    rows = read_training_table(data, target_name, settings, notes)
    table, target = rows.table, rows.target
    with notes.warnings():
        columns = inspect_columns(table, rows.label, settings.columns, notes)
        _note_few_steps(settings, target.task, table.num_rows, notes)
        comparison = None
        if not settings.no_compare:
            estimator = settings.make_estimator(target.task, verbose=0)
            comparison = compare(table, target, estimator, folds=settings.folds, seed=settings.seed, notes=notes)
        model = settings.make_estimator(target.task, verbose=int(notes.shows_progress))
        started = time.perf_counter()
        model.fit(table, target.values)
        seconds = time.perf_counter() - started
    rows.record_forms(model.encoder_)
    return FitReport(rows.label, table.num_rows, columns, target, comparison, seconds, settings.out, model)


def _fit_streamed(table: ParquetTable, data: str, target_name: str, settings: FitSettings, notes: Notes) -> FitReport:
    from tartree.cli.workflow.streamed_fit import check_stream, fit_stream

    task = check_stream(table, data, target_name, settings.drop, settings.task, notes)
    check_kinds(settings.columns, table.all_names, data, (target_name, *settings.drop))
    if not settings.no_compare:
        reason = "" if settings.stream else f", for it has {table.n_rows:,} rows of {len(table.names)} columns"
        how = f"is streamed{reason}" if settings.cluster is None else "is learnt from on a cluster"
        notes.add(f"{data} {how}: without a comparison with other models")
    with notes.warnings():
        _note_few_steps(settings, task, table.n_rows, notes)
        model = settings.make_estimator(task, verbose=int(notes.shows_progress))
        drop_missing, cluster = settings.drop_missing_target, settings.cluster_options()
        started = time.perf_counter()
        columns, target, n_rows = fit_stream(model, table, target_name, drop_missing, notes, cluster)
        seconds = time.perf_counter() - started
    return FitReport(data, n_rows, columns, target, None, seconds, settings.out, model)


def _note_few_steps(settings: FitSettings, task: Task, n_rows: int, notes: Notes) -> None:
    """Add a note if a named model takes too few steps on so few rows to learn much."""
    if settings.preset is None or settings.epochs is not None:
        return
    recipe = settings.make_estimator(task, verbose=0).spec().recipe
    steps = recipe.epochs * recipe.n_batches(n_rows)
    if recipe.optimizer == "adam" and steps < FEW_STEPS:
        notes.add(
            f"the {recipe.epochs} epochs of {settings.preset} are {steps:,} steps of training on {n_rows:,} rows, "
            f"which is few; --epochs {-(-FEW_STEPS * recipe.epochs // steps)} takes more"
        )
