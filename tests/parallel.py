"""Run the suite in several processes, without installing anything: ``python tests/parallel.py [options of pytest]``.

pytest-xdist is used if installed; otherwise each process runs a share of the test modules. Versions of other packages
are not pinned, so their warnings are not errors.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence

MOST_PROCESSES = 12  # each has a context on the GPU, about half a GiB
SHARD = "TARTREE_TEST_SHARD"  # "2/12": the third of twelve shares
NO_TESTS = 5  # exit status of pytest


def main(arguments: Sequence[str]) -> int:
    n_processes = max(1, min(MOST_PROCESSES, os.cpu_count() or 1))
    command = [sys.executable, "-m", "pytest", "-W", "default", "--doctest-ignore-import-errors", *arguments]
    if importlib.util.find_spec("xdist") is not None:
        return subprocess.call([*command, "-n", str(n_processes), "--dist", "worksteal"])
    shards = []
    for shard in range(n_processes):
        output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        environment = {**os.environ, SHARD: f"{shard}/{n_processes}"}
        started = subprocess.Popen(
            [*command, "-p", "no:cacheprovider"], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        shards.append((started, output))
    counts: Counter[str] = Counter()
    failed = False
    for started, output in shards:
        status = started.wait()
        output.seek(0)
        text = output.read()
        counts += count_outcomes(text)
        if status not in (0, NO_TESTS):
            failed = True
            print(text)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return int(failed)


def count_outcomes(text: str) -> Counter[str]:
    """Count outcomes in the last summary line of pytest's output.

    >>> sorted(count_outcomes("1 failed\\n2 failed, 10 passed, 1 skipped in 3.14s\\n").items())
    [('failed', 2), ('passed', 10), ('skipped', 1)]
    """
    lines = [line for line in text.splitlines() if re.search(r"\d+ \w+.* in [\d.]+s", line)]
    outcomes = re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed)", lines[-1] if lines else "")
    return Counter({outcome.rstrip("s") if "error" in outcome else outcome: int(count) for count, outcome in outcomes})


def share_of(modules: Sequence[str], shard: str) -> set[str]:
    """Return the modules of a shard.

    >>> sorted(share_of(["a", "b", "c"], "0/2"))
    ['a', 'c']
    """
    number, of = map(int, shard.split("/"))
    return set(sorted(set(modules))[number::of])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
