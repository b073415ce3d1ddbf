"""The command line of the study."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from uci.baselines import Baseline
from uci.results import Results, machine
from uci.runner import Settings, pick_models, plan, run
from uci.sets import ORDER, list_sets

EXAMPLES = """examples:
  python benchmarks/uci --models structures mlps ours --device cuda --precision tf32 --processes 4
  python benchmarks/uci --models DT LR --groups small
  python benchmarks/uci --report"""


def main(arguments: Sequence[str] | None = None, begin: float | None = None) -> int:
    """Run a command; `begin` is when it was given, on the clock of `time.perf_counter`."""
    begin = time.perf_counter() if begin is None else begin
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    results = Results(options.out / (f"seed-{options.seed}.jsonl" if options.seed else "results.jsonl"))
    if options.report:
        from uci.report import write_report

        print(f"written: {write_report(results, options.out)}")
        return 0
    try:
        models = pick_models(options.models)
        sets = list_sets(options.groups, options.sets)
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
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
    try:
        all_done = run(jobs, results, settings, say=lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("stopped; what is done is kept, and the same command goes on", file=sys.stderr)
        return 130
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    except (RuntimeError, ConnectionError) as error:
        print(f"stopped by {type(error).__name__}: {error}; the same command goes on", file=sys.stderr)
        return 1
    if all_done and jobs:
        note_time(options.out / "times.jsonl", options, len(sets), len(jobs), time.perf_counter() - begin)
    return 0


def note_time(path: Path, options: argparse.Namespace, n_sets: int, n_trainings: int, seconds: float) -> None:
    """How long a whole command took, from its start: what a reader would wait."""
    line = {
        "models": options.models,
        "sets": n_sets,
        "trainings": n_trainings,
        "seconds": round(seconds, 1),
        "processes": options.processes,
        "precision": options.precision,
        "machine": machine(torch.device(options.device)),
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
    parser.add_argument("--epochs", type=int, help="instead of the recipe's; such results are not reported")
    parser.add_argument("--threads", type=int, default=1, help="of a process, on a CPU")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no training after this time")
    parser.add_argument(
        "--seed", type=int, default=0, help="of weights and batches; results of others go to a file each"
    )
    parser.add_argument("--retry", action="store_true", help="try again what failed")
    parser.add_argument("--processes", type=int, default=1, help="share the work out over processes on one device")
    parser.add_argument("--cluster", metavar="ADDRESS", help="share it out over a Ray cluster: auto, or its address")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/uci"), metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="write the page from the results there are")
    return parser
