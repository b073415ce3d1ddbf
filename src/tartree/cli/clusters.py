"""`--cluster`: fitting and predicting on a Ray cluster, of Parquet files that all of its nodes see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.errors import Problem, naming
from tartree.cli.notes import Notes
from tartree.cli.reading import Source, not_parquet

if TYPE_CHECKING:
    from tartree.cli.predicting import Columns


@contextmanager
def connection(address: str | None, **options: Any) -> Iterator[None]:
    """A connection to the cluster, if one is asked for: what is wrong with it is said before any data is looked at.

    Options are those that only a cluster has.
    """
    if address is None:
        for name, value in options.items():
            if value is not None:
                raise click.UsageError(f"--{name} is for a cluster; give --cluster auto or --cluster HOST:PORT too")
        yield
        return
    from tartree.cluster import connected

    with ExitStack() as stack:
        try:
            stack.enter_context(connected(address))
        except ImportError as error:
            raise Problem(str(error)) from error
        yield


@contextmanager
def backend(address: str | None) -> Iterator[None]:
    """What joblib runs goes to the cluster, if one is asked for."""
    if address is None:
        yield
        return
    from tartree.cluster import joblib_backend

    with joblib_backend(address):
        yield


def fit(model: Any, table: Any, target: str, drop_missing_target: bool, options: dict[str, Any]) -> Any:
    """Fit in place; the statistics of the stream. Options are those of `tartree.cluster.fit`."""
    from tartree.cluster.distributed_fit import ClusterSettings, fit_source
    from tartree.model.stream_source import StreamSource

    source = StreamSource(table, [target], drop_missing_target=drop_missing_target)
    fit_source(model, source, ClusterSettings(**options))
    return source.statistics


def predicted(
    model: Any, source: Source, columns: Columns, proba: bool, address: str, workers: int | None
) -> Iterator[Any]:
    """The rows of Parquet files with their predictions, in their order."""
    from tartree.cluster.distributed_prediction import predict_tables

    table, call = source.table, _Prediction(columns, proba)
    if table is None:
        raise not_parquet(source.label)
    if not table.n_rows:
        yield call(model, table.schema.empty_table(), table.label, 0)
    yield from predict_tables(model, table, call, address=address, workers=workers)


class _Prediction:
    """What a worker does with some rows."""

    def __init__(self, columns: Columns, proba: bool) -> None:
        # Rows that are being read, and a terminal, stay where they are.
        columns._source, columns._notes = replace(columns._source, batches=iter(()), table=None), Notes(quiet=True)
        self.columns, self.proba = columns, proba

    def __call__(self, model: Any, rows: Any, path: str, n_before: int) -> Any:
        from tartree.cli.predicting import with_predictions

        with naming(path, n_before):
            return with_predictions(model, rows, self.columns.select(rows, n_before), self.proba)
