"""`--cluster`: a connection to a Ray cluster, and predictions there of Parquet files that all of its nodes see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.io.input_table import InputTable
from tartree.cli.io.parquet_input import not_parquet
from tartree.cli.problems import Problem, located_errors

if TYPE_CHECKING:
    from tartree import TartClassifier, TartRegressor
    from tartree.cli.workflow.model_columns import ModelColumns
    from tartree.model import FittedModel


@contextmanager
def connection(address: str | None, **options: Any) -> Iterator[None]:
    """Connect to the cluster of an address, if any, before data is read; `options` need an address."""
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
def joblib_backend(address: str | None) -> Iterator[None]:
    """Let joblib run its tasks on the cluster of an address, if any."""
    if address is None:
        yield
        return
    from tartree import cluster

    with cluster.joblib_backend(address):
        yield


def predict_on_cluster(
    estimator: TartClassifier | TartRegressor,
    source: InputTable,
    columns: ModelColumns,
    proba: bool,
    address: str,
    workers: int | None,
) -> Iterator[Any]:
    """Yield the rows of Parquet files with their predictions, in their order."""
    from tartree.cluster.distributed_prediction import predict_tables

    table, predict = source.parquet, _RowPrediction(columns, proba)
    if table is None:
        raise not_parquet(source.label)
    if not table.n_rows:
        yield predict(estimator, table.schema.empty_table(), table.label, 0)
    yield from predict_tables(estimator, table, predict, address=address, workers=workers)


class _RowPrediction:
    """Predictions of some rows by a worker."""

    def __init__(self, columns: ModelColumns, proba: bool) -> None:
        self.columns, self.proba = columns.without_source(), proba

    def __call__(self, model: FittedModel | TartClassifier | TartRegressor, rows: Any, path: str, n_before: int) -> Any:
        from tartree.cli.workflow.file_prediction import append_predictions
        from tartree.model import fitted_model

        with located_errors(path, n_before):
            return append_predictions(fitted_model(model), rows, self.columns.select(rows, n_before), self.proba)
