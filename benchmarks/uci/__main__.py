"""Run the study, or write its page: python benchmarks/uci --help."""

import sys
from pathlib import Path

if __package__ in (None, ""):  # started as a folder: its parent is where the package is found
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from uci.command import main

if __name__ == "__main__":
    sys.exit(main())
