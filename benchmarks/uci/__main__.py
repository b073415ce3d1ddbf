"""Run the study, or write its page: python benchmarks/uci --help."""

import sys
import time
from pathlib import Path

if __package__ in (None, ""):  # started as a folder: its parent is where the package is found
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from uci.processes import load_ahead

if __name__ == "__main__":
    begin = time.perf_counter()  # loading counts too
    if "--processes" in " ".join(sys.argv):
        load_ahead("uci.runner")  # while this process loads the same

    from uci.command import main

    sys.exit(main(begin=begin))
