"""Prediction on a cluster: blocks of a table go to workers that hold the model; results keep the order of rows."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tartree.cluster.connection import add_worker_traceback, connected, count_slots
from tartree.cluster.shared_files import shared_table

if TYPE_CHECKING:
    from tartree.model import FittedModel, HasModel
    from tartree.table import ParquetTable
    from tartree.table.parquet import Block

Model = TypeVar("Model", bound="FittedModel | HasModel")

#: Rows that a worker reads and predicts at a time.
CHUNK_ROWS = 2**16


def predict(
    model: FittedModel | HasModel,
    source: Any,
    *,
    method: Literal["predict", "predict_proba"] = "predict",
    workers: int | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
) -> NDArray[Any]:
    """Predict Parquet files with many workers, in the order of files and rows.

    The model is sent to each worker once. Blocks of a worker that is lost are predicted again by another.

    Parameters
    ----------
    model : fitted TartClassifier or TartRegressor, or FittedModel
    source : str, path, list of these, or pyarrow dataset
        Parquet files, under paths that hold on every node.
    method : {"predict", "predict_proba"}, default="predict"
    workers : int, optional
        Processes that predict; by default as many as fit into the cluster.
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : int and float
        Cores and GPUs of one worker.

    Returns
    -------
    ndarray of shape (rows,), (rows, targets) or (rows, classes)
        What the method of the estimator returns.

    Raises
    ------
    ValueError
        If the model has no such method, or the cluster no room for the workers. What is wrong with the data is raised
        as in one process.

    Examples
    --------
    >>> from tartree import cluster, load
    >>> cluster.predict(load("model.tart"), "rows/*.parquet", method="predict_proba")  # doctest: +SKIP
    """
    import pyarrow as pa

    from tartree.model import fitted_model

    fitted = fitted_model(model)
    methods = ("predict", "predict_proba") if fitted.is_classifier else ("predict",)
    if method not in methods:
        raise ValueError(f"method must be one of {', '.join(methods)} for this model, got {method!r}")
    names = getattr(fitted.encoder, "feature_names_in_", None)
    table = shared_table(source, None if names is None else [str(name) for name in names])
    convert = PredictionTable(method)
    parts = list(predict_tables(fitted, table, convert, workers=workers, address=address, cpus=cpus, gpus=gpus))
    if not parts:
        parts = [convert(fitted, pa.Table.from_batches([], schema=table.schema))]
    predicted = convert.array(pa.concat_tables(parts))
    return fitted.classes[predicted] if fitted.is_classifier and method == "predict" else predicted


def predict_tables(
    model: Model,
    source: Any,
    function: Callable[[Model, Any, str, int], Any],
    *,
    workers: int | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
) -> Iterator[Any]:
    """Yield ``function(model, rows, path, n_before)`` for all rows of Parquet files, in their order.

    `rows` and results are Arrow tables; `rows` are of the file `path`, after `n_before` others. Only a few results wait
    at a time, so that all of them need not fit into memory.
    """
    from tartree.model import fitted_model, like

    table = shared_table(source)
    if not table.blocks:
        return
    with connected(address) as ray, _ray_data() as data:
        slots = count_slots(ray, cpus, gpus)
        n_workers = slots if workers is None else workers
        if not 1 <= n_workers <= max(1, slots):
            raise ValueError(f"workers must be from 1 to {slots}, for which the cluster has room, got {n_workers}")
        # The column of results that holds an error, which is unpickled: no file may know its name before.
        error_column = secrets.token_hex(16)
        indices = [{"block": index} for index in range(len(table.blocks))]
        sent = like(model, fitted_model(model).record(sample=None).on_cpu())
        results = data.from_items(indices, override_num_blocks=len(indices)).map_batches(
            Predictor,
            fn_constructor_args=(sent, table, function, error_column, gpus > 0),
            batch_size=1,
            batch_format="numpy",
            num_cpus=cpus,
            num_gpus=gpus or None,
            compute=data.ActorPoolStrategy(size=min(n_workers, len(indices))),
        )
        tables = iter(results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=2))
        with closing(tables):  # which ends the workers
            for result in tables:
                if error_column in result.column_names:
                    raise ray.cloudpickle.loads(result[error_column].drop_null()[0].as_py())
                yield result


class Predictor:
    """A worker that holds the model, and reads and predicts blocks by their index; errors are results in a column."""

    def __init__(
        self,
        model: FittedModel | HasModel,
        table: ParquetTable,
        function: Callable[[Any, Any, str, int], Any],
        error_column: str,
        on_gpu: bool,
    ) -> None:
        from tartree.model import fitted_model, like

        self.model = like(model, fitted_model(model).to("cuda" if on_gpu else "cpu"))
        self.table, self.function, self.error_column = table, function, error_column

    def __call__(self, batch: dict[str, NDArray[Any]]) -> Iterator[Any]:
        try:
            for index in batch["block"].tolist():
                yield from self._predict(self.table.blocks[index])
        except Exception as error:  # Ray Data would add advice to its message, and keep the worker
            import pyarrow as pa
            from ray import cloudpickle

            yield pa.table({self.error_column: [cloudpickle.dumps(add_worker_traceback(error))]})

    def _predict(self, block: Block) -> Iterator[Any]:
        """Yield the results of a block in chunks."""
        from tartree.table.row_error import naming

        path, n_before = self.table.files[block.file], self.table.rows_of(block).start
        for batch in self.table.read(block, piece_rows=CHUNK_ROWS):
            with naming(path, range(n_before, n_before + batch.num_rows)):
                result = self.function(self.model, self.table.as_table(batch), path, n_before)
            yield result
            n_before += batch.num_rows


class PredictionTable:
    """Predictions as Arrow tables of numbers, and back; classes are indices."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __call__(self, model: FittedModel, rows: Any, path: str = "", n_before: int = 0) -> Any:
        """Predict rows and return an Arrow table."""
        import pyarrow as pa

        if model.is_classifier:
            predicted = model.predict_proba(rows)
            predicted = predicted.argmax(axis=1) if self.method == "predict" else predicted
        else:
            predicted = model.predict(rows)
        if predicted.ndim == 1:
            return pa.table({"value": predicted})
        return pa.table({f"column_{k}": column for k, column in enumerate(predicted.T)})

    @staticmethod
    def array(table: Any) -> NDArray[Any]:
        """Return the predictions in a table, (rows,) or (rows, columns)."""
        columns = [column.to_numpy() for column in table.columns]
        return columns[0] if table.column_names == ["value"] else np.stack(columns, axis=1)


@contextmanager
def _ray_data() -> Iterator[Any]:
    """Yield the module `ray.data`, which keeps order and prints nothing within the block."""
    import logging

    from ray import data

    context = data.DataContext.get_current()
    before = context.execution_options.preserve_order, context.enable_progress_bars
    logger = logging.getLogger("ray.data")
    level = logger.level
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    logger.setLevel(logging.CRITICAL)  # errors are raised
    try:
        yield data
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before
        logger.setLevel(level)
