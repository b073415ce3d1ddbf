"""Public data in its official splits: the 121 UCI sets of Fernandez-Delgado et al. (JMLR 2014).

`download` fetches the archive, `archive` reads it without trusting it, `set_files` and `split_lines` make a `UciSet` of
each folder in it, `oddities` notes what is unusual about one, `cache` stores them, and `uci` has the public functions.
"""

from tartree.datasets.cache import UciIndex, UciSummary
from tartree.datasets.names import OFFICIAL
from tartree.datasets.uci import OFFICIAL_URL, fetch_uci, load_uci, uci_index, uci_names
from tartree.datasets.uci_set import UciSet, group

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
