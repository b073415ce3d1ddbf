"""One worker of a fit on a cluster: `tartree.model.fit` with the worker's shards, from the last checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tartree.cluster.connection import add_worker_traceback
from tartree.cluster.ray_checkpoints import RayCheckpointStore
from tartree.cluster.torch_worker_group import LostWorkerError, OtherWorkerError, TorchWorkerGroup
from tartree.model import FittedModel, ModelSpec, fit
from tartree.model.stream_blocks import StreamStatistics
from tartree.model.stream_source import StreamSource
from tartree.training import Epoch


@dataclass(frozen=True)
class WorkerInput:
    """What every worker of a fit receives."""

    spec: ModelSpec
    source: StreamSource
    resumed: FittedModel | None
    checkpoint_seconds: float


@dataclass(frozen=True)
class WorkerResult:
    """What the first worker returns."""

    model: FittedModel  # on the CPU
    statistics: StreamStatistics


def run_worker(config: dict[str, Any]) -> None:
    """Fit as one worker, from the beginning or from the last checkpoint; results and errors go to the coordinator."""
    import ray
    from ray import train

    coordinator = config["coordinator"]
    if ray.get(coordinator.outcome.remote())[0] is not None:
        return  # an error that would be raised again
    work: WorkerInput = ray.get(config["work"])
    spec, source = work.spec, work.source
    workers = TorchWorkerGroup(ray, coordinator)
    checkpoints = RayCheckpointStore(train, workers, work.checkpoint_seconds)

    def report(epoch: Epoch) -> None:
        coordinator.report_epoch.remote(ray.cloudpickle.dumps(epoch))

    if workers.rank == 0:
        spec = replace(spec, callbacks=(*spec.callbacks, report))
    try:
        model = fit(spec, source, resumed=work.resumed, workers=workers, checkpoints=checkpoints)
    except OtherWorkerError:
        return
    except LostWorkerError:
        raise
    except Exception as error:
        if not workers.is_whole:
            raise  # a consequence of the worker being taken down
        _send_error(ray, coordinator, error)
        if workers.n_averages:  # the others wait for this one in a collective, and only its end releases them
            raise
        return
    if workers.rank == 0:
        result = WorkerResult(model.on_cpu(), source.statistics)
        ray.get(coordinator.finish.remote(ray.cloudpickle.dumps(result)))


def _send_error(ray: Any, coordinator: Any, error: Exception) -> None:
    try:
        ray.get(coordinator.fail.remote(add_worker_traceback(error)))
    except TypeError:  # the error cannot be pickled
        ray.get(coordinator.fail.remote(RuntimeError(f"{type(error).__name__}: {error}")))
