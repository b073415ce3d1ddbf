"""What a benchmark runs with: versions, the processor, and the peak memory of this process."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import torch


def versions(*more: str) -> str:
    """Return the versions that results depend on, as a list in words."""
    import sklearn

    import tartree

    packages = f"tartree {tartree.__version__}, torch {torch.__version__}, scikit-learn {sklearn.__version__}"
    return ", ".join([packages, f"Python {platform.python_version()}", *more])


def machine(device: torch.device) -> dict[str, Any]:
    """Return device, threads and versions, as records hold them."""
    import sklearn

    import tartree

    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sklearn": sklearn.__version__,
        "tartree": tartree.__version__,
    }


def processor() -> str:
    """Return the name of the processor, as precisely as the system states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def peak_memory() -> int:
    """Return the peak of resident memory of this process in KiB (Linux); getrusage would start from the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]
