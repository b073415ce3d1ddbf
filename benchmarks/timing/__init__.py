"""Parts of `benchmarks/speed.py`: the library, lower bounds and other packages on the same work, and the page."""
