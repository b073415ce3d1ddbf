"""One model trained by many workers, each of which reads its own part of the rows."""

from __future__ import annotations

import copy
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tartree.cluster.connecting import connected, count_slots, noted
from tartree.cluster.tables import everywhere

if TYPE_CHECKING:
    from tartree.estimators.base import BaseTart

Estimator = TypeVar("Estimator", bound="BaseTart")


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
    """Fit an estimator to Parquet files with many workers; it is the estimator that one process would have fitted.

    Every worker reads its own blocks of the files. In each step the workers learn from their parts of one batch, and
    the mean of their gradients, by weight, moves the same tree on all of them. Up to eight workers,
    neither the encoder nor batches depend on their number; results differ by the order in which numbers are added.
    (Dropout, drawn by each worker, and the balance penalty, a mean of the workers', do depend on it; and more workers
    have more lanes, hence other batches.)

    When a worker is lost, all go back to the last checkpoint and go on, as soon as there is room for them.

    Parameters
    ----------
    estimator : TartClassifier or TartRegressor
        Fitted in place. Its callbacks are called on every worker, and must say the same on each.
    source : str, path, list of these, or pyarrow dataset
        Parquet files, under names that hold on every node.
    y : str or list of str
        The column, or columns, to predict.
    sample_weight : str, optional
        The column of the weights of rows.
    workers : int or tuple of two, optional
        Processes that train; by default one a node, or one a GPU where `gpus` are asked for. With ``(least, most)``, as
        many as there is room for, which may change on the way when nodes are lost or added.
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : int and float
        What one worker takes. Workers with a GPU talk through NCCL, others through Gloo.
    storage : str, optional
        Folder or address of an object store, seen by every node, for checkpoints: in a folder ``tartree-...`` within,
        which is removed when the fit ends, however it ends. It may be left out where all nodes are on this machine.
    checkpoint_seconds : float, default=60
        The least time between checkpoints, which are made at the end of an epoch.
    retries : int, default=3
        How often a worker may be lost.

    Returns
    -------
    The estimator.

    Examples
    --------
    >>> from tartree import TartClassifier, cluster
    >>> model = TartClassifier(depth=6, random_state=0)
    >>> cluster.fit(model, "rows/*.parquet", y="target", workers=4).save("model.tart")  # doctest: +SKIP
    """
    from tartree.estimators.streaming import check_names, check_types

    named = [*(y if isinstance(y, list | tuple) else [y]), sample_weight]
    table = everywhere(source).with_index(named)  # what is wrong with the files is said before anybody starts
    targets, weight = check_names(table, y, sample_weight)
    check_types(table, targets, weight, labels=hasattr(estimator, "class_weight"))
    fit_table(
        estimator,
        {"table": table, "targets": targets, "weight": weight},
        workers=workers,
        address=address,
        cpus=cpus,
        gpus=gpus,
        storage=storage,
        checkpoint_seconds=checkpoint_seconds,
        retries=retries,
    )
    return estimator


def fit_table(
    estimator: BaseTart,
    arguments: dict[str, Any],
    *,
    workers: int | tuple[int, int] | None = None,
    address: str = "auto",
    cpus: int = 1,
    gpus: float = 0.0,
    storage: str | None = None,
    checkpoint_seconds: float = 60.0,
    retries: int = 3,
) -> Any:
    """Call `fit_stream` with these arguments on many workers; what it returns. The estimator is fitted in place."""
    from tartree.training.shards import SHARDS

    with connected(address) as ray:
        number = _check_workers(ray, workers, cpus, gpus)
        with _storage(ray, storage) as folder:
            lanes = max(SHARDS, number if isinstance(number, int) else number[1])
            work = {
                "estimator": _with_seed(estimator, gpus),
                "arguments": {**arguments, "n_lanes": lanes},
                "checkpoint_seconds": checkpoint_seconds,
            }
            fitted, found = _run(ray, work, number, cpus, gpus, folder, retries, estimator.verbose)
    own = estimator.get_params(deep=False)
    estimator.__dict__.update(fitted.__dict__)
    estimator.set_params(**own)  # what was sent to the workers is not a parameter
    estimator.tree_.to(estimator._device())
    return found


def _check_workers(ray: Any, workers: int | tuple[int, int] | None, cpus: int, gpus: float) -> int | tuple[int, int]:
    """How many workers there are to be, for which there must be room."""
    slots = count_slots(ray, cpus, gpus)
    if workers is None:
        from tartree.training.shards import SHARDS

        nodes = sum(node["Alive"] and node["Resources"].get("CPU", 0) >= cpus for node in ray.nodes())
        return max(1, min(slots, SHARDS, slots if gpus else nodes))
    least, most = workers if isinstance(workers, tuple) else (workers, workers)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in (least, most)) or not 1 <= least <= most:
        raise ValueError(f"workers must be an integer of at least 1, or two of them, however: workers={workers!r}")
    if least > slots:  # Ray would wait for more nodes, without a word
        raise ValueError(
            f"workers must fit into the cluster, which has room for {slots} of {cpus} cores and {gpus:g} GPUs, "
            f"however: workers={workers}; add nodes, or ask for less"
        )
    return workers


def _with_seed(estimator: Estimator, gpus: float) -> Estimator:
    """A copy for the workers: on their kind of device, and with the random numbers that one process would draw.

    A generator is sent as it is, and goes on here as if the fit had drawn from it.
    """
    from sklearn.utils import check_random_state

    sent = copy.copy(estimator)
    if sent.device == "auto":
        sent.device = "cuda" if gpus else "cpu"
    if not isinstance(sent.random_state, Integral):
        own = check_random_state(sent.random_state)
        sent.random_state = copy.deepcopy(own)  # all workers, and those that start again, draw the same from it
        estimator._draw_seeds(own)
    sent.verbose = 0
    return sent


class Storage(NamedTuple):
    """A folder for the checkpoints of one fit."""

    filesystem: Any
    place: str
    name: str  # of the folder in this place


@contextmanager
def _storage(ray: Any, storage: str | None) -> Iterator[Storage]:
    """A folder in the given place or, where all nodes are here, in one of this machine; it is removed at the end."""
    from pyarrow import fs

    if storage is None:
        addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if addresses != {ray.util.get_node_ip_address()}:
            raise ValueError(
                f"storage must be a folder that every node sees, however: storage=None, and there are nodes on "
                f"{len(addresses)} machines; give a shared folder or the address of an object store"
            )
        storage = tempfile.gettempdir()
    local = fs.LocalFileSystem(), os.path.abspath(storage)
    filesystem, place = fs.FileSystem.from_uri(storage) if "://" in storage else local
    found = Storage(filesystem, place, f"tartree-{secrets.token_hex(8)}")
    try:
        yield found
    finally:
        with suppress(FileNotFoundError):  # nothing was ever kept
            filesystem.delete_dir(f"{place}/{found.name}")


def _run(
    ray: Any,
    work: dict[str, Any],
    workers: int | tuple[int, int],
    cpus: int,
    gpus: float,
    storage: Storage,
    retries: int,
    verbose: int,
) -> tuple[BaseTart, Any]:
    """Train on workers; the fitted estimator and what the fit returned. What went wrong on one of them is raised."""
    from ray import train
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from tartree.cluster.board import Board

    # The board must outlive all workers: it lives where we live.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    board = ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()
    trainer = TorchTrainer(
        train_part,
        # By reference: what only workers need is not unpacked on the way to them.
        train_loop_config={"board": board, "work": ray.put(work)},
        torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if gpus else "gloo"),
        scaling_config=train.ScalingConfig(
            num_workers=workers,
            use_gpu=gpus > 0,
            resources_per_worker={"CPU": cpus} | ({"GPU": gpus} if gpus else {}),
            placement_strategy="SPREAD",
        ),
        run_config=train.RunConfig(
            name=storage.name,
            storage_path=storage.place,
            storage_filesystem=storage.filesystem,
            failure_config=train.FailureConfig(max_failures=retries),
            checkpoint_config=train.CheckpointConfig(num_to_keep=1),
        ),
    )
    given_up: Exception | None = None
    try:
        try:
            with _own_interrupts(), _shown(ray, board, work["estimator"]._recipe().epochs, verbose):
                trainer.fit()
        except train.TrainingFailedError as error:
            given_up = error
        failure, fitted = ray.get(board.outcome.remote())
    finally:
        ray.kill(board)
    if failure is not None:
        raise failure
    if fitted is None:
        raise RuntimeError(f"the training was given up after {retries} new starts: {given_up}") from given_up
    result: tuple[BaseTart, Any] = ray.cloudpickle.loads(fitted)
    return result


@contextmanager
def _shown(ray: Any, board: Any, epochs: int, verbose: int) -> Iterator[None]:
    """A progress bar here, of the epochs that the board is told of."""
    if not verbose:
        yield
        return
    from tartree.training.progress import progress_bar

    ended = threading.Event()

    def watch() -> None:
        with progress_bar(epochs, verbose) as show:
            going_on = True
            while going_on:
                going_on = not ended.wait(0.5)
                told = ray.get(board.told.remote())
                if told is not None:
                    show(ray.cloudpickle.loads(told))

    watching = threading.Thread(target=watch, name="tartree-progress", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def train_part(sent: dict[str, Any]) -> None:
    """What a worker does: its part of a fit, from the beginning or from the last checkpoint."""
    import ray
    from ray import train

    from tartree.cluster.checkpoints import RayKeeper
    from tartree.cluster.team import Elsewhere, Lost, TorchTeam
    from tartree.estimators.streaming import fit_stream

    board = sent["board"]
    if ray.get(board.outcome.remote())[0] is not None:
        return  # an error that would come again
    work = ray.get(sent["work"])
    estimator = work["estimator"]
    team = TorchTeam(ray, board)
    keeper = RayKeeper(train, team, work["checkpoint_seconds"])
    own = estimator.callbacks
    if team.rank == 0:
        estimator.callbacks = (*estimator._callbacks(), lambda epoch: board.tell.remote(ray.cloudpickle.dumps(epoch)))
    try:
        found = fit_stream(estimator, **work["arguments"], team=team, keeper=keeper)
    except Elsewhere:
        return
    except Lost:
        raise
    except Exception as error:
        if not team.is_whole:
            raise  # whatever comes of a worker that is being taken down
        _tell(ray, board, error)
        if team.steps:  # the others wait for this one, and only its end wakes them
            raise
        return
    if team.rank == 0:
        estimator.callbacks = own
        estimator.tree_.cpu()
        ray.get(board.finish.remote(ray.cloudpickle.dumps((estimator, found))))


def _tell(ray: Any, board: Any, error: Exception) -> None:
    try:
        ray.get(board.fail.remote(noted(error)))
    except TypeError:  # an error that cannot be pickled
        ray.get(board.fail.remote(RuntimeError(f"{type(error).__name__}: {error}")))


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl-C as it is elsewhere: Ray Train's handler would end the program, and stay when the training is over."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if in_main else None
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
