"""Prediction on a cluster: blocks of a table go to workers that hold the model, and come back in the order of rows."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tartree.cluster.connecting import connected, count_slots, noted
from tartree.cluster.tables import everywhere

#: Rows that a worker reads and predicts at a time.
PIECE_ROWS = 2**16


def predict(
    model: Any,
    source: Any,
    *,
    method: Literal["predict", "predict_proba"] = "predict",
    workers: int | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
) -> NDArray[Any]:
    """What a fitted estimator predicts for Parquet files, in the order of files and rows.

    The model is sent to each worker once. What a lost worker was at is predicted again by another.

    Parameters
    ----------
    model : fitted TartClassifier or TartRegressor
    source : str, path, list of these, or pyarrow dataset
        Parquet files, under names that hold on every node.
    method : {"predict", "predict_proba"}
    workers : int, optional
        Processes that predict; by default as many as fit into the cluster.
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : int and float
        What one worker takes.

    Examples
    --------
    >>> from tartree import cluster, load
    >>> cluster.predict(load("model.tart"), "rows/*.parquet", method="predict_proba")  # doctest: +SKIP
    """
    import pyarrow as pa
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "tree_")
    known = ("predict", "predict_proba") if hasattr(model, "classes_") else ("predict",)
    if method not in known:
        raise ValueError(f"method must be one of {', '.join(known)} for this model, however: method={method!r}")
    names = getattr(model, "feature_names_in_", None)
    table = everywhere(source, None if names is None else [str(name) for name in names])
    calls = Numbers(method)
    parts = list(predict_tables(model, table, calls, workers=workers, address=address, cpus=cpus, gpus=gpus))
    if not parts:
        parts = [calls(model, pa.Table.from_batches([], schema=table.schema))]
    found = calls.array(pa.concat_tables(parts))
    return model.classes_[found] if hasattr(model, "classes_") and method == "predict" else found


def predict_tables(
    model: Any,
    source: Any,
    function: Callable[[Any, Any, str, int], Any],
    *,
    workers: int | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
) -> Iterator[Any]:
    """What ``function(model, rows, path, n_before)`` gives for all rows of Parquet files: Arrow tables, in their order.

    Rows are Arrow tables too, of the file `path`, and `n_before` counts those before them there. Only a few results
    wait at a time, so that the whole need not fit into memory.
    """
    table = everywhere(source)
    if not table.blocks:
        return
    with connected(address) as ray, _ordered() as data:
        slots = count_slots(ray, cpus, gpus)
        wanted = slots if workers is None else workers
        if not 1 <= wanted <= max(1, slots):
            raise ValueError(f"workers must be from 1 to {slots}, which is what fits here, however: workers={workers}")
        # A column of results that holds what went wrong; it is unpickled, so no file may know its name before.
        failed = secrets.token_hex(16)
        numbers = [{"block": number} for number in range(len(table.blocks))]
        found = data.from_items(numbers, override_num_blocks=len(numbers)).map_batches(
            Predictor,
            fn_constructor_args=(model, table, function, failed, gpus > 0),
            batch_size=1,
            batch_format="numpy",
            num_cpus=cpus,
            num_gpus=gpus or None,
            compute=data.ActorPoolStrategy(size=min(wanted, len(numbers))),
        )
        coming = iter(found.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=2))
        with closing(coming):  # which ends the workers
            for some in coming:
                if failed in some.column_names:
                    raise ray.cloudpickle.loads(some[failed].drop_null()[0].as_py())
                yield some


class Predictor:
    """A worker: it has the model, and reads the blocks that it is told; what goes wrong is a column called `failed`."""

    def __init__(
        self, model: Any, table: Any, function: Callable[[Any, Any, str, int], Any], failed: str, on_gpu: bool
    ) -> None:
        self.model, self.table, self.function, self.failed = model, table, function, failed
        model.tree_.to("cuda" if on_gpu else "cpu")

    def __call__(self, batch: dict[str, NDArray[Any]]) -> Iterator[Any]:
        try:
            for number in batch["block"].tolist():
                yield from self._predicted(self.table.blocks[number])
        except Exception as error:  # Ray Data would write advice into its message, and keep the worker
            import pyarrow as pa
            from ray import cloudpickle

            yield pa.table({self.failed: [cloudpickle.dumps(noted(error))]})

    def _predicted(self, block: Any) -> Iterator[Any]:
        from tartree.table.row_error import naming

        path, n_before = self.table.files[block.file], self.table.rows_of(block).start
        for piece in self.table.read(block, piece_rows=PIECE_ROWS):
            with naming(path, range(n_before, n_before + piece.num_rows)):
                found = self.function(self.model, self.table.as_table(piece), path, n_before)
            yield found
            n_before += piece.num_rows


class Numbers:
    """Predictions as columns of numbers, and back; classes are their places in `classes_`."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __call__(self, model: Any, rows: Any, path: str = "", n_before: int = 0) -> Any:
        import pyarrow as pa

        if hasattr(model, "classes_"):
            found = model.predict_proba(rows)
            found = found.argmax(axis=1) if self.method == "predict" else found
        else:
            found = model.predict(rows)
        if found.ndim == 1:
            return pa.table({"value": found})
        return pa.table({f"column_{place}": column for place, column in enumerate(found.T)})

    @staticmethod
    def array(table: Any) -> NDArray[Any]:
        """(rows,) or (rows, columns)."""
        columns = [column.to_numpy() for column in table.columns]
        return columns[0] if table.column_names == ["value"] else np.stack(columns, axis=1)


@contextmanager
def _ordered() -> Iterator[Any]:
    """The module `ray.data`, told to keep order and to be quiet, for as long as the block."""
    import logging

    from ray import data

    context = data.DataContext.get_current()
    before = context.execution_options.preserve_order, context.enable_progress_bars
    logger = logging.getLogger("ray.data")
    level = logger.level
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    logger.setLevel(logging.CRITICAL)  # what goes wrong is raised
    try:
        yield data
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before
        logger.setLevel(level)
