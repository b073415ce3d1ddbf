"""Structure search: candidates trained together on a table, and the Pareto front of their scores and sizes."""

from tartree.search.baselines import baseline_scores
from tartree.search.front_plot import plot_front
from tartree.search.sizes import Size, size_of
from tartree.search.spaces import PAPER_SERIES, SPACES, expand
from tartree.search.structure_search import StructureSearch

__all__ = [
    "PAPER_SERIES",
    "SPACES",
    "Size",
    "StructureSearch",
    "baseline_scores",
    "expand",
    "plot_front",
    "size_of",
]
