"""Speed, in one run: ours, the least that the hardware needs, and other soft trees, on the same tensors.

    python benchmarks/speed.py [--device cuda] [--peers DIR] [--mnist DIR] [--sections table shapes ...]

Before anything is timed, training steps and predictions are compared with the reference. Results go to
docs/benchmarks/speed.json, .md and figures (speed-gpu on a GPU); a run of some sections keeps the others' results if
they come from the same machine and versions. Sections:

    table   a training step and a batch of predictions, D 8, 10, 12: ours, floors, plain torch, peers
    shapes  W 3, S 2, D 7, and linear leaves (D 6, L 1), each against its own floor
    epochs  a whole epoch of 60,000 rows against its steps; a fleet of 64 trees against one
    curves  cost against depth, window, batch, features, members and rows
    fits    whole fits of small tables against scikit-learn's random forest and boosting
    row     one row on the CPU: the best leaf by search, and by a look at all nodes
    mnist   seconds until a soft tree has 95 % (with --mnist DIR, the folder of MNIST's four .gz files)
    memory  peak memory of a step (CPU)

`neural-trees` takes part where it is installed (pip install neural-trees).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import answers, curves, memory, table
from timing.clock import Clock
from timing.page import SECTIONS, write_page
from timing.peers import HELP
from timing.work import Work, check_against_reference

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    arguments = parse()
    if arguments.memory_of is not None:
        memory.print_peak_memory(arguments.memory_of)
        return
    device = torch.device(arguments.device)
    name = "speed" if device.type == "cpu" else "speed-gpu"
    out: Path = arguments.out or ROOT / "docs" / "benchmarks" / name
    out.parent.mkdir(parents=True, exist_ok=True)
    if arguments.page:
        write_page(json.loads(out.with_suffix(".json").read_text()), out)
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    results = {"machine": machine(device), "error": check_against_reference(device), "sections": {}}
    results["sections"] = earlier(out, results["machine"])
    print(f"equal to the reference, largest relative error {results['error']:.1e}", flush=True)
    for section, run in sections(arguments, Clock(device, arguments.repeats, arguments.seconds)).items():
        begin = time.perf_counter()
        try:
            results["sections"][section] = run()
        except Exception as error:  # one section that fails must not take the others with it
            traceback.print_exc()
            results["sections"][section] = {"failure": f"{type(error).__name__}: {error}"[:500]}
        print(f"{section}: {time.perf_counter() - begin:.0f} s", flush=True)
        out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")  # after each: a run may be cut short
    write_page(results, out)
    print(
        "\n".join(line for line in out.with_suffix(".md").read_text().splitlines() if line.startswith(("|", "#", "-")))
    )


def sections(arguments: argparse.Namespace, clock: Clock) -> dict[str, Callable[[], dict[str, Any]]]:
    """What to run, by name."""
    small, peers = arguments.small, arguments.peers
    depths = arguments.depths or ([3, 4] if small else [8, 10, 12])
    sizes = {"features": 50, "batch": 64} if small else {}
    cpu = clock.device.type == "cpu"

    def shapes() -> dict[str, Any]:
        works = [Work(3 if small else 7, 3, 2, **sizes), Work(3 if small else 6, leaf_layers=1, **sizes)]
        return {"rows": [table.compare(work, clock) for work in works]}

    def compared() -> dict[str, Any]:
        return {"rows": [table.compare(Work(d, **sizes), clock, peers, extras=True) for d in depths]}

    def row() -> dict[str, Any]:
        depth, features = (6, 30) if small else (12, 784)
        return {"depth": depth, "rows": answers.one_row(clock.device, depth, features)}

    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "table": compared,
        "shapes": shapes,
        "epochs": lambda: table.members_and_epochs(
            clock, depths[:1] if cpu else depths, 2048 if small else 60_000, 4 if small else 64
        ),
        "curves": lambda: {"curves": curves.measure(clock, arguments.seconds * 25, small)},
        "fits": lambda: {"rows": answers.fits(str(clock.device), small)},
        "row": row,
        "mnist": lambda: answers.mnist(arguments.mnist, clock, epochs=1 if small else None),
        "memory": lambda: {"units": {d: memory.peak_memory(Path(__file__), d) for d in depths}},
    }
    chosen = arguments.sections or list(runs)
    if arguments.mnist is None:
        chosen = [s for s in chosen if s != "mnist"]
    if not cpu or not sys.platform.startswith("linux"):
        chosen = [s for s in chosen if s != "memory"]
    return {section: runs[section] for section in chosen}


def earlier(out: Path, here: dict[str, Any]) -> dict[str, Any]:
    """Sections of a run before, if they come from the same machine and versions."""
    path = out.with_suffix(".json")
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return dict(found["sections"]) if found.get("machine") == here and "sections" in found else {}


def machine(device: torch.device) -> dict[str, Any]:
    found = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    if device.type == "cuda":
        found["CUDA"] = torch.version.cuda
        try:
            import triton

            found["triton"] = triton.__version__
        except ImportError:
            found["triton"] = "none"
    return found


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        return names[0].split(":", 1)[1].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--depths", type=int, nargs="+", help="of the table; 8 10 12 by default")
    parser.add_argument("--peers", type=Path, help=HELP)
    parser.add_argument("--mnist", type=Path, help="the folder with MNIST's train-images-idx3-ubyte.gz and so on")
    parser.add_argument("--repeats", type=int, default=20, help="turns of a measurement; slow functions take fewer")
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long one function is timed")
    parser.add_argument("--out", type=Path, help="where results go, without the ending")
    parser.add_argument(
        "--page", action="store_true", help="only the page and the figures, from results that are there"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the program; not for the record")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
