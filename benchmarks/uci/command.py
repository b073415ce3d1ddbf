"""The command line of the study."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from uci.baselines import Baseline
from uci.results import Line, Results
from uci.runner import Settings, pick_models, plan, run
from uci.sets import ORDER, list_sets, summaries
from uci.trees import CHUNK

EXAMPLES = """examples:
  python benchmarks/uci --models structures mlps ours --device cuda --precision tf32 --processes 4
  python benchmarks/uci --models DT LR --groups small
  python benchmarks/uci --report"""


def main(arguments: Sequence[str] | None = None, begin: float | None = None) -> int:
    """Run a command; `begin` is when it was given, on the clock of `time.perf_counter`."""
    begin = time.perf_counter() if begin is None else begin
    parser = _parser()
    options = parser.parse_args(arguments)
    if problem := device_problem(options.device, on_cluster=options.cluster is not None):
        parser.error(f"argument --device: {problem}")
    results = Results(options.out / (f"seed-{options.seed}.jsonl" if options.seed else "results.jsonl"))
    try:
        if options.report:
            from uci.report import write_report

            print(f"written: {write_report(results, options.out)}")
            return 0
        return _run(options, results, begin)
    except KeyboardInterrupt:
        print("stopped; what is done is kept, and the same command goes on", file=sys.stderr)
        return 130
    except ConnectionError as error:
        print(_stopped(error), file=sys.stderr)
        return 1
    except OSError as error:  # no sets, or no place for results
        print(_describe(error, options.out), file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, results: Results, begin: float) -> int:
    try:
        models = pick_models(options.models)
        sets = list_sets(options.groups, options.sets)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.sets and len(sets) < len(set(options.sets)):
        print(_left_out(options, sets), file=sys.stderr, flush=True)
    if not sets:
        which = "sets asked for" if options.sets else "sets that are there"
        groups = " ".join(options.groups)
        print(f"there is nothing to do: none of the {which} is in the groups {groups}", file=sys.stderr)
        return 2
    for one in models:
        if isinstance(one, Baseline) and one.missing:
            print(one.missing, flush=True)
    models = [one for one in models if not (isinstance(one, Baseline) and one.missing)]
    settings = Settings(
        options.device,
        options.precision,
        options.epochs,
        options.threads,
        options.retry,
        options.limit_seconds,
        options.processes,
        options.cluster,
        options.seed,
    )
    jobs = plan(models, sets, results, settings)
    print(f"{len(jobs)} trainings to do", flush=True)
    if not jobs:
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=options.out):  # better no training at all than one that cannot be kept
        pass
    try:
        all_done = run(jobs, results, settings, say=lambda text: print(text, flush=True))
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(_stopped(error), file=sys.stderr)
        return 1
    there = results.read(options.epochs)
    lines = [there[one.name, job.set] for job in jobs for one in job.models if (one.name, job.set) in there]
    # What a trial takes, or a command with failures, is not the time that a reader would wait.
    if all_done and options.epochs is None and not any(line["failure"] for line in lines):
        seconds = time.perf_counter() - begin
        note_time(options.out / "times.jsonl", options, len(sets), len(jobs), seconds, lines[-1]["machine"])
    return 0


def device_problem(name: str, on_cluster: bool = False) -> str | None:
    """What is wrong with a device; a cluster may have what this machine lacks."""
    offered = "cpu, cuda, or cuda:N for the GPU of number N"
    try:
        device = torch.device(name)
    except RuntimeError:
        return f"must be {offered}, however: {name!r}"
    if device.type not in CHUNK:
        return f"must be {offered}, however: {name!r}"
    if device.type == "cpu" or on_cluster:
        return None
    if not torch.cuda.is_available():
        return f"torch finds no GPU here, however: {name!r}; use --device cpu, or a build of torch for your GPU"
    if (device.index or 0) >= torch.cuda.device_count():
        return f"must be below cuda:{torch.cuda.device_count()}, the number of GPUs, however: {name!r}"
    return None


def _left_out(options: argparse.Namespace, sets: list[str]) -> str:
    """Sets that were asked for by name, but are of another group."""
    others = ", ".join(
        f"{name} is {summaries()[name].group}" for name in dict.fromkeys(options.sets) if name not in sets
    )
    return f"not in the groups {' '.join(options.groups)}, and left out: {others}; leave out --groups to have all"


def _stopped(error: Exception) -> str:
    return f"stopped by {type(error).__name__}: {error}; the same command goes on"


def _describe(error: OSError, out: Path) -> str:
    if error.strerror is None:  # one of ours, which says what to do
        return str(error)
    return f"cannot read or write {error.filename or out}: {error.strerror}; choose another folder with --out"


def note_time(
    path: Path, options: argparse.Namespace, n_sets: int, n_trainings: int, seconds: float, where: Line
) -> None:
    """How long a whole command took, from its start: what a reader would wait. Groups are named unless it was all."""
    line = {
        "models": options.models,
        **({} if set(options.groups) == set(ORDER) else {"groups": options.groups}),
        "sets": n_sets,
        "trainings": n_trainings,
        "seconds": round(seconds, 1),
        "processes": options.processes,
        "precision": options.precision,
        "machine": where,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def at_least(least: int) -> Callable[[str], int]:
    """A whole number for argparse."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, however: {text}")
        return number

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python benchmarks/uci", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["structures", "mlps", "ours"], metavar="MODEL")
    parser.add_argument("--groups", nargs="+", default=list(ORDER), choices=ORDER)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these sets of the groups")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="single", choices=["single", "tf32", "bfloat16"])
    parser.add_argument("--epochs", type=at_least(1), help="instead of the recipe's; such results are not reported")
    parser.add_argument("--threads", type=at_least(1), default=1, help="of a process, on a CPU")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no training after this time")
    parser.add_argument(
        "--seed", type=at_least(0), default=0, help="of weights and batches; results of others go to a file each"
    )
    parser.add_argument("--retry", action="store_true", help="try again what failed")
    parser.add_argument(
        "--processes", type=at_least(1), default=1, help="share the work out over processes on one device"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="share it out over a Ray cluster: auto, or its address")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/uci"), metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="write the page from the results there are")
    return parser
