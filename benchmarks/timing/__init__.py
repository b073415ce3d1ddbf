"""Parts of `benchmarks/speed.py`: what is timed (ours, floors, peers), how, and the page it makes."""
