"""Public data in its official splits: the 121 UCI sets of Fernandez-Delgado et al. (JMLR 2014).

`download` brings the archive, `archive` reads it without trusting it, `parsing` and `splits` make a `UciSet` of each
folder in it, `oddities` says what is unusual about one, `cache` keeps them all, and `uci` has the functions to call.
"""

from tartree.datasets.cache import UciIndex, UciSummary
from tartree.datasets.names import OFFICIAL
from tartree.datasets.record import UciSet, group
from tartree.datasets.uci import OFFICIAL_URL, fetch_uci, load_uci, uci_index, uci_names

__all__ = [
    "OFFICIAL",
    "OFFICIAL_URL",
    "UciIndex",
    "UciSet",
    "UciSummary",
    "fetch_uci",
    "group",
    "load_uci",
    "uci_index",
    "uci_names",
]
