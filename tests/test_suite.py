"""The tests themselves: what they must not depend on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COLLECT = """
import sys, time
import pytest
clock, late = time.time, float(sys.argv[1])
time.time = lambda: clock() + late
sys.exit(pytest.main("--collect-only -p no:cacheprovider -o addopts= -W ignore --quiet --doctest-modules".split()))
"""


def test_every_process_collects_the_same_tests(tmp_path):
    """pytest-xdist refuses to run otherwise: no id may hold a hash, an address, a time or a folder of its process."""
    processes = []
    for number in range(2):
        folder = tmp_path / f"process {number}"
        folder.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": str(number), "TMPDIR": str(folder), "HOME": str(folder)}
        command = [sys.executable, "-c", COLLECT, str(number * 100_000)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    first, second = ({line for line in output.splitlines() if "::" in line} for output, _ in outputs)
    assert len(first) > 3000
    assert first ^ second == set()


@pytest.mark.skipif(sys.platform != "linux", reason="continuous integration runs on Linux")
def test_continuous_integration_runs_in_empty_folders():
    """Functions stand in for the browser and for make: a program in a temporary folder would be hidden with it."""
    standins = {"chromium": ":", "make": 'echo "$@"; ls -A /tmp; exit 7'}
    functions = {f"BASH_FUNC_{name}%%": f"() {{ {body}; }}" for name, body in standins.items()}
    done = subprocess.run([ROOT / ".ci" / "run"], env=os.environ | functions, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    target, *listed = done.stdout.splitlines()
    assert target == "test"
    may_mount = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    if may_mount.returncode == 0 and Path("/tmp") not in ROOT.parents:
        assert listed == ["a folder"]


def test_ctrl_c_can_be_tested_in_a_background_job():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; signal.raise_signal(2)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.endswith("KeyboardInterrupt\n"), done.stderr
