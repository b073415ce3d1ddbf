"""The command line of the study."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from uci.baselines import Baseline
from uci.results import Results
from uci.runner import Settings, pick_models, plan, run
from uci.sets import ORDER, list_sets

EXAMPLES = """examples:
  python benchmarks/uci --models structures mlps ours --device cuda --precision tf32 --processes 4
  python benchmarks/uci --models DT LR --groups small
  python benchmarks/uci --report"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    results = Results(options.out / "results.jsonl")
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
    )
    jobs = plan(models, sets, results, settings)
    print(f"{len(jobs)} trainings to do", flush=True)
    try:
        run(jobs, results, settings, say=lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("stopped; what is done is kept, and the same command goes on", file=sys.stderr)
        return 130
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    except (RuntimeError, ConnectionError) as error:
        print(f"stopped by {type(error).__name__}: {error}; the same command goes on", file=sys.stderr)
        return 1
    return 0


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
    parser.add_argument("--retry", action="store_true", help="try again what failed")
    parser.add_argument("--processes", type=int, default=1, help="share the work out over processes on one device")
    parser.add_argument("--cluster", metavar="ADDRESS", help="share it out over a Ray cluster: auto, or its address")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/uci"), metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="write the page from the results there are")
    return parser
