"""A fitted model as one self-contained HTML page.

Python gathers plain data (`reporting`) and puts it into one file with the scripts and styles beside it (`bundling`). In
the browser, `main.js` wires what the other scripts make: `engine.js` computes predictions, `tree.js` draws.
"""

from tartree.explain.page.reporting import write_report
from tartree.explain.page.validation import Validation

__all__ = ["Validation", "write_report"]
