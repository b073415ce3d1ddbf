"""Speed, in one run: ours, the least that the hardware needs, and other soft trees, on the same tensors.

    python benchmarks/speed.py [--device cuda] [--peers DIR] [--mnist DIR] [--sections table shapes ...]

Before anything is timed, training steps and predictions are compared with the reference. Results go to
docs/benchmarks/speed.json, .md and figures (speed-gpu on a GPU). Sections that are not run, and those that fail, keep
the results that are there, of the same machine and versions. Sections:

    table      a training step and a batch of predictions, D 8, 10, 12: ours, floors, plain torch, peers
    shapes     W 3, S 2, D 7, and linear leaves (D 6, L 1), each against its own floor
    choice     steps of small shapes by the fused kernels and by the native backend (GPU)
    epochs     a whole epoch of 60,000 rows against its steps; a fleet of 64 trees against one
    curves     cost against depth, window, batch, features, members and rows
    fits       whole fits of small tables against scikit-learn's random forest and boosting
    row        one row on the CPU: the best leaf by search, and by a look at all nodes
    mnist      seconds until a soft tree has 95 %, in a fresh process and warm (with --mnist)
    precision  the same training, warm, in single precision, TF32 (GPU) and bfloat16 (with --mnist)
    memory     peak memory of a step (CPU, Linux)

`neural-trees` takes part where it is installed (pip install neural-trees).
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
from timing import answers, choice, curves, memory, mnist, table
from timing.clock import Clock
from timing.page import SECTIONS, beside, write_page
from timing.peers import CLONES, HELP
from timing.work import Work, check_against_reference

import tartree

ROOT = Path(__file__).resolve().parents[1]


def main(words: Sequence[str] | None = None) -> int:
    """Run the sections; 1 if one of them failed, 130 after Ctrl-C."""
    arguments = parse(words)
    if arguments.memory_of is not None:
        memory.print_peak_memory(arguments.memory_of)
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
            raise SystemExit(f"a page is made from results, however: there is no {out}.json; run sections first")
        write_page(before, out)
        return 0
    here = machine(device) | ({"sizes": "tiny"} if arguments.small else {})
    if arguments.sections and before is not None and before["machine"] != here:
        raise SystemExit(
            f"results of some sections must join those of the same machine and versions, however: {out}.json has "
            f"{before['machine']}, and here is {here}; run all sections, or name another place with --out"
        )
    make_room(out)
    results = {"machine": here} | check_against_reference(clock) | {"sections": {}}
    if before is not None and before["machine"] == here:
        results["sections"] = {name: found for name, found in before["sections"].items() if "failure" not in found}
    print(f"equal to the reference, largest relative error {results['error']:.1e}", flush=True)
    status = 0
    try:
        for section, run in sections(arguments, clock).items():
            begin = time.perf_counter()
            try:
                note = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "tartree": tartree.__version__}
                results["sections"][section] = run() | note
                ending = "done"
            except Exception:  # one section that fails must not take the others with it
                traceback.print_exc()
                ending, status = "FAILED, and what there was before is kept", 1
            print(f"{section}: {ending} after {time.perf_counter() - begin:.0f} s", flush=True)
            # After each: a run may be cut short.
            beside(out, ".json").write_text(json.dumps(results, indent=1) + "\n")
    except KeyboardInterrupt:
        print("interrupted: the sections before are kept", flush=True)
        status = 130
    write_page(results, out)
    lines = beside(out, ".md").read_text().splitlines()
    print("\n".join(line for line in lines if line.startswith(("|", "#", "-"))))
    return status


def sections(arguments: argparse.Namespace, clock: Clock) -> dict[str, Callable[[], dict[str, Any]]]:
    """What to run, by name."""
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

    def row() -> dict[str, Any]:
        depth, features = (6, 30) if small else (12, 784)
        return answers.one_row(clock.device, depth, features)

    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "table": compared,
        "shapes": shapes,
        "choice": lambda: choice.measure(clock, small),
        "epochs": lambda: table.members_and_epochs(
            clock, depths[:1] if cpu else depths, 2048 if small else 60_000, 4 if small else 64
        ),
        "curves": lambda: curves.measure(clock, arguments.seconds * 25, small),
        "fits": lambda: {"rows": answers.fits(str(clock.device), small)},
        "row": row,
        "mnist": lambda: mnist.time_to_accuracy(Path(__file__), arguments.mnist, clock, epochs),
        "precision": lambda: mnist.precisions(arguments.mnist, clock, epochs),
        "memory": lambda: {"units": {d: memory.peak_memory(Path(__file__), d) for d in depths}},
    }
    chosen = arguments.sections or [s for s in runs if cannot_run(s, arguments) is None]
    return {section: runs[section] for section in chosen}


def cannot_run(section: str, arguments: argparse.Namespace) -> str | None:
    """Why a section cannot be run here; None if it can."""
    if section in ("mnist", "precision") and arguments.mnist is None:
        return "needs MNIST's files: name their folder with --mnist"
    if section == "memory" and (arguments.device.type != "cpu" or not sys.platform.startswith("linux")):
        return "is seen on a CPU under Linux: say --device cpu"
    if section == "choice" and arguments.device.type != "cuda":
        return "is one of a GPU: say --device cuda"
    return None


def read(out: Path) -> dict[str, Any] | None:
    """Results that are there; None without."""
    path = beside(out, ".json")
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SystemExit(
            f"--out must name a place for results, however: {path} cannot be read ({error.strerror})"
        ) from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not {"machine", "error", "sections"} <= set(found):
        raise SystemExit(f"{path} must hold results of this program, however: it does not; name another with --out")
    return found


def make_room(out: Path) -> None:
    """The folder of the results; before hours of work, that they can be written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise SystemExit(
            f"--out must name a place for results, however: nothing can be written to {out.parent} ({error.strerror})"
        ) from None


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


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=_device, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--depths", type=_positive(int), nargs="+", help="of the table; 8 10 12 by default")
    parser.add_argument("--peers", type=_folder(any, [folder for folder, _ in CLONES.values()]), help=HELP)
    parser.add_argument("--mnist", type=_folder(all, mnist.FILES), help=f"the folder with {', '.join(mnist.FILES)}")
    turns = "turns of a measurement; slow functions take fewer"
    parser.add_argument("--repeats", type=_positive(int), default=20, help=turns)
    parser.add_argument("--seconds", type=_positive(float), default=3.0, help="about how long one function is timed")
    parser.add_argument("--out", type=Path, help="where results go, without the ending")
    parser.add_argument(
        "--page", action="store_true", help="only the page and the figures, from results that are there"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the program; with --out")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--mnist-epochs", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.out is not None and not arguments.out.name:
        parser.error(f"--out must name files, without their ending, however: {str(arguments.out)!r} is a folder")
    if arguments.small and arguments.out is None:
        parser.error("results of --small are not for the record: name another place with --out")
    for section in arguments.sections or ():
        if (why := cannot_run(section, arguments)) is not None:
            parser.error(f"the section {section} {why}")
    return arguments


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise argparse.ArgumentTypeError(f"the device must be cpu or cuda, however: {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(f"torch finds {torch.cuda.device_count()} GPUs, however: {name!r}; say cpu")
    return device


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    def number(word: str) -> float:
        try:
            found = kind(word)
        except ValueError:
            found = kind(0)
        if not 0 < found < float("inf"):
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{wanted} above 0 is wanted, however: {word!r}")
        return found

    return number


def _folder(enough: Callable[[Iterable[bool]], bool], names: list[str]) -> Callable[[str], Path]:
    def folder(word: str) -> Path:
        if not enough((Path(word) / name).exists() for name in names):
            kind = "all" if enough is all else "some"
            raise argparse.ArgumentTypeError(f"the folder must have {kind} of {', '.join(names)}, however: {word!r}")
        return Path(word)

    return folder


if __name__ == "__main__":
    sys.exit(main())
