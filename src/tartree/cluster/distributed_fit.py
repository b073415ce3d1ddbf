"""One model fitted by many workers, each of which reads its shards of the rows."""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from tartree.checks import check_integer
from tartree.cluster.connection import connected, count_slots
from tartree.cluster.shared_files import shared_table

if TYPE_CHECKING:
    from tartree.cluster.fit_worker import WorkerInput, WorkerResult
    from tartree.cluster.ray_checkpoints import CheckpointFolder
    from tartree.estimators.base import BaseTart
    from tartree.model import ModelSpec
    from tartree.model.stream_source import StreamSource

Estimator = TypeVar("Estimator", bound="BaseTart")


@dataclass(frozen=True)
class ClusterSettings:
    """Where and how workers run; see `fit` for the meaning of each."""

    workers: int | tuple[int, int] | None = None
    address: str = "auto"
    cpus: int = 1
    gpus: float = 0.0
    storage: str | None = None
    checkpoint_seconds: float = 60.0
    retries: int = 3

    def resolve_workers(self, ray: Any) -> int | tuple[int, int]:
        """Return the number of workers or its range, which the cluster must have room for."""
        from tartree.training.shards import SHARDS

        slots = count_slots(ray, self.cpus, self.gpus)
        if self.workers is None:
            nodes = sum(node["Alive"] and node["Resources"].get("CPU", 0) >= self.cpus for node in ray.nodes())
            return max(1, min(slots, SHARDS, slots if self.gpus else nodes))
        least, most = self.workers if isinstance(self.workers, tuple) else (self.workers, self.workers)
        check_integer("workers", least, 1)
        check_integer("the most workers", most, least)
        if least > slots:  # Ray would wait for more nodes without a message
            raise ValueError(
                f"workers must fit into the cluster, which has room for {slots} of {self.cpus} cores and {self.gpus:g} "
                f"GPUs, got {self.workers}; add nodes, or ask for less"
            )
        return self.workers


def fit(
    estimator: Estimator,
    source: Any,
    y: str | list[str],
    *,
    sample_weight: str | None = None,
    workers: int | tuple[int, int] | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
    storage: str | None = None,
    checkpoint_seconds: float = 60.0,
    retries: int = 3,
) -> Estimator:
    """Fit an estimator to Parquet files with many workers, to the model that one process would fit.

    Every worker reads its shards of the files. In each step the workers learn from their parts of one batch, and the
    weighted mean of their gradients updates the same tree on all of them. Up to eight workers, neither the encoder nor
    batches depend on their number; results differ by the order in which numbers are added. (Dropout, drawn by each
    worker, and the balance penalty, a mean over the workers, do depend on it; and more than eight workers have more
    shards, hence other batches.)

    If a worker is lost, all resume from the last checkpoint as soon as the cluster has room for them.

    Parameters
    ----------
    estimator : TartClassifier or TartRegressor
        Fitted in place. Its callbacks are called on every worker, and must return the same on each.
    source : str, path, list of these, or pyarrow dataset
        Parquet files, under paths that hold on every node.
    y : str or list of str
        Target column, or columns.
    sample_weight : str, optional
        Column with the weights of rows.
    workers : int or tuple of two, optional
        Processes that train; by default one a node, or one a GPU with `gpus`. With ``(least, most)``, as many as the
        cluster has room for, which may change when nodes are lost or added.
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : int and float
        Cores and GPUs of one worker. Workers with a GPU communicate by NCCL, others by Gloo.
    storage : str, optional
        Folder or address of an object store, seen by every node, for checkpoints: in a folder ``tartree-...`` within,
        which is removed when the fit ends or fails. Optional if all nodes are on this machine.
    checkpoint_seconds : float, default=60
        Shortest time between checkpoints, which are written at the end of an epoch.
    retries : int, default=3
        How often workers are restarted after one was lost, at most.

    Returns
    -------
    estimator
        The same, fitted.

    Raises
    ------
    RuntimeError
        If workers are lost more often than `retries`. What is wrong with the data is raised as in one process.

    Examples
    --------
    >>> from tartree import TartClassifier, cluster
    >>> model = TartClassifier(depth=6, random_state=0)
    >>> cluster.fit(model, "rows/*.parquet", y="target", workers=4).save("model.tart")  # doctest: +SKIP
    """
    from tartree.model.stream_source import StreamSource, check_names, check_types

    table = shared_table(source).with_index([*(y if isinstance(y, list | tuple) else [y]), sample_weight])
    targets, weight = check_names(table, y, sample_weight)
    check_types(table, targets, weight, estimator.spec().codec_type)  # before workers start
    settings = ClusterSettings(workers, address, cpus, gpus, storage, checkpoint_seconds, retries)
    return fit_source(estimator, StreamSource(table, targets, weight), settings)


def fit_source(estimator: Estimator, source: StreamSource, settings: ClusterSettings) -> Estimator:
    """Fit an estimator to a stream with many workers, as its own `fit_source` does in one process.

    Afterwards `source.statistics` can be read. If anything fails, the estimator is left as it was.
    """
    from tartree.cluster.fit_worker import WorkerInput
    from tartree.cluster.ray_checkpoints import checkpoint_folder
    from tartree.model.spec import find_device
    from tartree.training.shards import SHARDS

    spec, resumed = estimator.spec(), estimator.resumed_model()
    with connected(settings.address) as ray, checkpoint_folder(ray, settings.storage) as folder:
        workers = settings.resolve_workers(ray)
        shared = copy.copy(source)
        shared.table = shared_table(source.table)
        shared.n_shards = max(SHARDS, workers if isinstance(workers, int) else workers[1])
        work = WorkerInput(
            worker_spec(spec, on_gpu=settings.gpus > 0),
            shared,
            None if resumed is None else resumed.record(sample=None).on_cpu(),
            settings.checkpoint_seconds,
        )
        result = _run(ray, work, workers, settings, folder, spec.verbose)
    source.statistics = result.statistics
    return estimator.adopt(result.model.to(find_device(spec.device)))


def worker_spec(spec: ModelSpec, *, on_gpu: bool) -> ModelSpec:
    """Return the spec for workers: on their kind of device, with the random numbers that one process would draw.

    A generator is sent as it is, and is advanced here as by a fit in this process.
    """
    from sklearn.utils import check_random_state

    random_state = spec.random_state
    if not isinstance(random_state, Integral):
        rng = check_random_state(random_state)
        random_state = copy.deepcopy(rng)  # all workers, and those that are restarted, draw the same from it
        spec.draw_seeds(rng)
    device = spec.device if spec.device != "auto" else "cuda" if on_gpu else "cpu"
    return replace(spec, device=device, random_state=random_state, verbose=0)


def _run(
    ray: Any,
    work: WorkerInput,
    workers: int | tuple[int, int],
    settings: ClusterSettings,
    folder: CheckpointFolder,
    verbose: int,
) -> WorkerResult:
    """Train on workers; raise the error of a worker here."""
    from ray import train
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from tartree.cluster.coordinator import Coordinator
    from tartree.cluster.fit_worker import run_worker

    # The coordinator must outlive all workers: it runs on the node of this process.
    this_node = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    coordinator = ray.remote(num_cpus=0, scheduling_strategy=this_node)(Coordinator).remote()
    cpus, gpus = settings.cpus, settings.gpus
    trainer = TorchTrainer(
        run_worker,
        # By reference: what only workers need is not unpickled on the way to them.
        train_loop_config={"coordinator": coordinator, "work": ray.put(work)},
        torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if gpus else "gloo"),
        scaling_config=train.ScalingConfig(
            num_workers=workers,
            use_gpu=gpus > 0,
            resources_per_worker={"CPU": cpus} | ({"GPU": gpus} if gpus else {}),
            placement_strategy="SPREAD",
        ),
        run_config=train.RunConfig(
            name=folder.name,
            storage_path=folder.parent,
            storage_filesystem=folder.filesystem,
            failure_config=train.FailureConfig(max_failures=settings.retries),
            checkpoint_config=train.CheckpointConfig(num_to_keep=1),
        ),
    )
    training_error: Exception | None = None
    try:
        try:
            with _python_interrupts(), _progress(ray, coordinator, work.spec.recipe.epochs, verbose):
                trainer.fit()
        except train.TrainingFailedError as error:
            training_error = error
        worker_error, pickled = ray.get(coordinator.outcome.remote())
    finally:
        ray.kill(coordinator)
    if worker_error is not None:
        raise worker_error
    if pickled is None:
        raise RuntimeError(f"training failed after {settings.retries} restarts: {training_error}") from training_error
    result: WorkerResult = ray.cloudpickle.loads(pickled)
    return result


@contextmanager
def _progress(ray: Any, coordinator: Any, epochs: int, verbose: int) -> Iterator[None]:
    """Show a progress bar of the epochs that the coordinator knows."""
    if not verbose:
        yield
        return
    from tartree.training.progress import progress_bar

    ended = threading.Event()

    def watch() -> None:
        with progress_bar(epochs, verbose) as show:
            is_running = True
            while is_running:
                is_running = not ended.wait(0.5)
                epoch = ray.get(coordinator.last_epoch.remote())
                if epoch is not None:
                    show(ray.cloudpickle.loads(epoch))

    thread = threading.Thread(target=watch, name="tartree-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _python_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C: Ray Train's handler would end the program, and stay after the training."""
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if in_main else None
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
