"""A fitted model as one self-contained HTML page.

Python gathers plain data (`report_data`) and puts it into one file with the scripts and styles beside it (`bundle`). In
the browser, `main.js` wires what the other scripts make: `engine.js` computes predictions, `tree.js` draws.
"""

from tartree.explain.page.cross_validation import Validation
from tartree.explain.page.report_data import write_report

__all__ = ["Validation", "write_report"]
