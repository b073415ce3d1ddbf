"""Run the study, or write its page: python benchmarks/uci --help."""

import sys
import time
from pathlib import Path

if __package__ in (None, ""):  # started as a folder: the package is in its parent
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from uci.processes import load_ahead

if __name__ == "__main__":
    begin = time.perf_counter()  # imports count too
    if "--processes" in " ".join(sys.argv):
        load_ahead("uci.runner")  # while this process imports the same

    from uci.command import main

    sys.exit(main(begin=begin))
