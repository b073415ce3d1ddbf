"""The command line of the study."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from toolkit.arguments import whole_number

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
    """Run a command; `begin` is its start on the clock of `time.perf_counter`."""
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
        print("stopped; results are kept, run the same command to resume", file=sys.stderr)
        return 130
    except ConnectionError as error:
        print(_stopped(error), file=sys.stderr)
        return 1
    except OSError as error:  # no sets, or no folder for results
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
        which = "requested" if options.sets else "available"
        print(f"nothing to do: none of the {which} sets is in the groups {' '.join(options.groups)}", file=sys.stderr)
        return 2
    missing = {model.name: model.missing for model in models if isinstance(model, Baseline) and model.missing}
    for message in missing.values():
        print(message, flush=True)
    models = [model for model in models if model.name not in missing]
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
    with tempfile.TemporaryFile(dir=options.out):  # fail before training if results cannot be written
        pass
    try:
        all_done = run(jobs, results, settings, say=lambda text: print(text, flush=True))
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(_stopped(error), file=sys.stderr)
        return 1
    saved = results.read(options.epochs)
    pairs = [(model.name, job.set) for job in jobs for model in job.models]
    lines = [saved[pair] for pair in pairs if pair in saved]
    # Times of trials and of commands with failures are not representative.
    if all_done and options.epochs is None and not any(line["failure"] for line in lines):
        seconds = time.perf_counter() - begin
        note_time(options.out / "times.jsonl", options, len(sets), len(jobs), seconds, lines[-1]["machine"])
    return 0


def device_problem(name: str, on_cluster: bool = False) -> str | None:
    """Return what is wrong with a device, or None; a cluster may have what this machine lacks."""
    offered = "cpu, cuda, or cuda:N for the GPU of number N"
    try:
        device = torch.device(name)
    except RuntimeError:
        return f"must be {offered}, got {name!r}"
    if device.type not in CHUNK:
        return f"must be {offered}, got {name!r}"
    if device.type == "cpu" or on_cluster:
        return None
    if not torch.cuda.is_available():
        return f"torch finds no GPU, got {name!r}; use --device cpu, or a build of torch for your GPU"
    if (device.index or 0) >= torch.cuda.device_count():
        return f"must be below cuda:{torch.cuda.device_count()}, the number of GPUs, got {name!r}"
    return None


def _left_out(options: argparse.Namespace, sets: list[str]) -> str:
    """Return a message about requested sets that are in another group."""
    others = ", ".join(
        f"{name} is {summaries()[name].group}" for name in dict.fromkeys(options.sets) if name not in sets
    )
    return f"not in the groups {' '.join(options.groups)}, left out: {others}; omit --groups to run all"


def _stopped(error: Exception) -> str:
    return f"stopped by {type(error).__name__}: {error}; run the same command to resume"


def _describe(error: OSError, out: Path) -> str:
    if error.strerror is None:  # an error of this package, with advice
        return str(error)
    return f"cannot read or write {error.filename or out}: {error.strerror}; choose another folder with --out"


def note_time(
    path: Path, options: argparse.Namespace, n_sets: int, n_trainings: int, seconds: float, where: Line
) -> None:
    """Record the time of a whole command, with its groups unless it ran all of them."""
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python benchmarks/uci", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["structures", "mlps", "ours"], metavar="MODEL")
    parser.add_argument("--groups", nargs="+", default=list(ORDER), choices=ORDER)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these sets of the groups")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="single", choices=["single", "tf32", "bfloat16"])
    parser.add_argument(
        "--epochs", type=whole_number(1), help="for trials, instead of the number of the recipe; not reported"
    )
    parser.add_argument("--threads", type=whole_number(1), default=1, help="of each process, on a CPU")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no training after this time")
    parser.add_argument(
        "--seed",
        type=whole_number(0),
        default=0,
        help="of weights and batches; other seeds have separate files of results",
    )
    parser.add_argument("--retry", action="store_true", help="run failures again")
    parser.add_argument("--processes", type=whole_number(1), default=1, help="number of processes on one device")
    parser.add_argument("--cluster", metavar="ADDRESS", help="run on a Ray cluster: auto, or its address")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/uci"), metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="only write the page, from the saved results")
    return parser
