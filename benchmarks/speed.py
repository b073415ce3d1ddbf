"""Speed of the library, of lower bounds for the hardware, and of other soft trees, on the same tensors.

    python benchmarks/speed.py [--device cuda] [--peers DIR] [--mnist DIR] [--sections table shapes ...]

Before timing, training steps and predictions are compared with the reference. Results go to
docs/benchmarks/speed.json, .md and figures (speed-gpu on a GPU). Sections that are not run, and those that fail, keep
their earlier results from the same machine and versions. Sections:

    table      a training step and a batch of predictions, D 8, 10, 12: ours, floors, plain torch, peers
    shapes     W 3, S 2, D 7, and linear leaves (D 6, L 1), each against its own floor
    choice     steps of small shapes by the fused kernels and by the native backend (GPU)
    epochs     a whole epoch of 60,000 rows against its steps; a fleet of 64 trees against one
    curves     cost against depth, window, batch, features, members and rows
    fits       whole fits of small tables against scikit-learn's random forest and boosting
    row        one row on the CPU: the best leaf by search, and by computing all nodes
    mnist      seconds until a soft tree has 95 %, in a new process and warm (with --mnist)
    precision  the same training, warm, in single precision, TF32 (GPU) and bfloat16 (with --mnist)
    memory     peak memory of a step (CPU, Linux)

`neural-trees` is included if it is installed (pip install neural-trees).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from timing import backends, curves, fits, latency, memory, mnist, table
from timing.clock import Clock
from timing.page import SECTIONS, write_page
from timing.peers import CLONES, HELP
from timing.work import Work, check_against_reference
from toolkit.arguments import positive_number, whole_number
from toolkit.environment import processor
from toolkit.idx import FILES
from toolkit.record import beside

import tartree

ROOT = Path(__file__).resolve().parents[1]


def main(options: Sequence[str] | None = None) -> int:
    """Run the sections; 1 if one of them failed, 130 after Ctrl-C."""
    arguments = parse(options)
    if arguments.memory_of is not None:
        memory.print_step_memory(arguments.memory_of)
        return 0
    device: torch.device = arguments.device
    clock = Clock(device, arguments.repeats, arguments.seconds)
    torch.set_float32_matmul_precision("highest")
    if arguments.mnist_epochs is not None:
        mnist.print_trainings(arguments.mnist, clock, arguments.mnist_epochs)
        return 0
    out: Path = arguments.out or ROOT / "docs" / "benchmarks" / ("speed" if device.type == "cpu" else "speed-gpu")
    before = read(out)
    if arguments.page:
        if before is None:
            raise SystemExit(f"{out}.json does not exist; run sections first, then --page")
        write_page(before, out)
        return 0
    here = machine(device) | ({"sizes": "tiny"} if arguments.small else {})
    if arguments.sections and before is not None and before["machine"] != here:
        raise SystemExit(
            f"{out}.json must be from the same machine and versions to add sections: expected {here}, got "
            f"{before['machine']}; run all sections, or choose another path with --out"
        )
    make_folder(out)
    results = {"machine": here} | check_against_reference(clock) | {"sections": {}}
    if before is not None and before["machine"] == here:
        results["sections"] = {
            name: section for name, section in before["sections"].items() if "failure" not in section
        }
    print(f"equal to the reference, largest relative error {results['error']:.1e}", flush=True)
    status = 0
    try:
        for section, run in sections(arguments, clock).items():
            begin = time.perf_counter()
            try:
                note = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "tartree": tartree.__version__}
                results["sections"][section] = run() | note
                ending = "done"
            except Exception:  # the other sections still run
                traceback.print_exc()
                ending, status = "FAILED, earlier results are kept", 1
            print(f"{section}: {ending} after {time.perf_counter() - begin:.0f} s", flush=True)
            # After each section, because a run may be interrupted.
            beside(out, ".json").write_text(json.dumps(results, indent=1) + "\n")
    except KeyboardInterrupt:
        print("interrupted: earlier sections are kept", flush=True)
        status = 130
    write_page(results, out)
    lines = beside(out, ".md").read_text().splitlines()
    print("\n".join(line for line in lines if line.startswith(("|", "#", "-"))))
    return status


def sections(arguments: argparse.Namespace, clock: Clock) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the sections to run, by name."""
    small, peers = arguments.small, arguments.peers
    depths = arguments.depths or ([3, 4] if small else [8, 10, 12])
    sizes = {"features": 50, "batch": 64} if small else {}
    epochs = 1 if small else None
    cpu = clock.device.type == "cpu"

    def shapes() -> dict[str, Any]:
        works = [Work(3 if small else 7, 3, 2, **sizes), Work(3 if small else 6, leaf_layers=1, **sizes)]
        return {"rows": [table.compare(work, clock) for work in works]}

    def compared() -> dict[str, Any]:
        rows = table.compare_depths([Work(d, **sizes) for d in depths], clock, peers)
        return {"plain": "product", "rows": rows}

    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "table": compared,
        "shapes": shapes,
        "choice": lambda: backends.measure(clock, small),
        "epochs": lambda: table.members_and_epochs(
            clock, depths[:1] if cpu else depths, 2048 if small else 60_000, 4 if small else 64
        ),
        "curves": lambda: curves.measure(clock, arguments.seconds * 25, small),
        "fits": lambda: fits.measure(str(clock.device), small),
        "row": lambda: latency.measure(clock.device, *((6, 30) if small else (12, 784))),
        "mnist": lambda: mnist.time_to_accuracy(Path(__file__), arguments.mnist, clock, epochs),
        "precision": lambda: mnist.precisions(arguments.mnist, clock, epochs),
        "memory": lambda: {"units": {d: memory.step_memory(Path(__file__), d) for d in depths}},
    }
    chosen = arguments.sections or [s for s in runs if cannot_run(s, arguments) is None]
    return {section: runs[section] for section in chosen}


def cannot_run(section: str, arguments: argparse.Namespace) -> str | None:
    """Return why a section cannot be run here, or None."""
    if section in ("mnist", "precision") and arguments.mnist is None:
        return "needs the files of MNIST: give their folder with --mnist"
    if section == "memory" and (arguments.device.type != "cpu" or not sys.platform.startswith("linux")):
        return "needs a CPU under Linux: use --device cpu"
    if section == "choice" and arguments.device.type != "cuda":
        return "needs a GPU: use --device cuda"
    return None


def read(out: Path) -> dict[str, Any] | None:
    """Return the saved results, or None."""
    path = beside(out, ".json")
    try:
        results = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SystemExit(f"cannot read {path} ({error.strerror}); choose another path with --out") from None
    except ValueError:
        results = None
    if not isinstance(results, dict) or not {"machine", "error", "sections"} <= set(results):
        raise SystemExit(f"{path} must hold results of this program, but does not; choose another path with --out")
    return results


def make_folder(out: Path) -> None:
    """Make the folder of the results, and check before hours of work that it can be written to."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise SystemExit(f"cannot write to {out.parent} ({error.strerror}); choose another path with --out") from None


def machine(device: torch.device) -> dict[str, Any]:
    facts = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    if device.type == "cuda":
        facts["CUDA"] = torch.version.cuda
        try:
            import triton

            facts["triton"] = triton.__version__
        except ImportError:
            facts["triton"] = "none"
    return facts


def parse(options: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=_device, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--depths", type=whole_number(1), nargs="+", help="of the table; 8 10 12 by default")
    parser.add_argument("--peers", type=_folder(any, [folder for folder, _ in CLONES.values()]), help=HELP)
    parser.add_argument("--mnist", type=_folder(all, FILES), help=f"the folder with {', '.join(FILES)}")
    turns = "turns of a measurement, fewer for slow functions"
    parser.add_argument("--repeats", type=whole_number(1), default=20, help=turns)
    parser.add_argument("--seconds", type=positive_number, default=3.0, help="approximate time for one function")
    parser.add_argument("--out", type=Path, help="path of the results, without an ending")
    parser.add_argument(
        "--page", action="store_true", help="only write the page and the figures, from the saved results"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, to test the program; needs --out")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--mnist-epochs", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(options)
    if arguments.out is not None and not arguments.out.name:
        parser.error(f"--out must be the path of a file without an ending, got the folder {str(arguments.out)!r}")
    if arguments.small and arguments.out is None:
        parser.error("--small needs --out, because its results must not replace the record")
    for section in arguments.sections or ():
        if (reason := cannot_run(section, arguments)) is not None:
            parser.error(f"the section {section} {reason}")
    return arguments


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise argparse.ArgumentTypeError(f"must be cpu or cuda, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(f"torch finds {torch.cuda.device_count()} GPUs, got {name!r}; use cpu")
    return device


def _folder(enough: Callable[[Iterable[bool]], bool], names: list[str]) -> Callable[[str], Path]:
    """Return a parser of folders that have all or some of the named entries."""

    def parse_folder(text: str) -> Path:
        if not enough((Path(text) / name).exists() for name in names):
            kind = "all" if enough is all else "some"
            raise argparse.ArgumentTypeError(f"must be a folder with {kind} of {', '.join(names)}, got {text!r}")
        return Path(text)

    return parse_folder


if __name__ == "__main__":
    sys.exit(main())
