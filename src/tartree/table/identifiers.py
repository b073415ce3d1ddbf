"""Identifiers: columns that name rows rather than describe them, and are left out of the features."""

from __future__ import annotations

import re

import numpy as np

from tartree.table.raw_column import RawColumn

#: Rows with a value below which nearly all texts may differ by chance.
LEAST_ROWS = 20
#: Share of different texts from which a column names its rows.
UNIQUE_SHARE = 0.95
#: Column names of identifiers.
ID_NAME = re.compile(r"(?i:(.*[\s_.-])?(id|uuid|guid|row[_ ]?(id|no|nr|num|number)|index))|.*[a-z]I[dD]|Unnamed: 0")
NEARLY_UNIQUE = "left out, for almost every row has another text, like a name or an identifier"
NUMBERED = "left out, for its name is that of an identifier, and every row has another whole number"


def identifier_note(raw: RawColumn, name: str) -> str | None:
    """Return why a column is an identifier, None if it is none.

    It is one if almost every row has another text, or if it has the name of an identifier and every row has another
    whole number. Other whole numbers are not, since years or ranks may differ in every row too.

    Examples
    --------
    >>> import numpy as np
    >>> from tartree.table.raw_column import read_array
    >>> rows = read_array(np.arange(30), "column")
    >>> identifier_note(rows, "customer_id"), identifier_note(rows, "year")
    ('left out, for its name is that of an identifier, and every row has another whole number', None)
    """
    if raw.kind == "category":
        values = raw.values if raw.codes is None else np.unique(raw.codes[raw.codes >= 0]).tolist()
        n_different = len(set(values) - {None})
        n_present = sum(value is not None for value in values) if raw.codes is None else int((raw.codes >= 0).sum())
        return is_nearly_unique(n_different, n_present)
    if raw.kind != "number" or len(raw.values) < LEAST_ROWS or not ID_NAME.fullmatch(name):
        return None
    values = raw.values
    if not (np.isfinite(values).all() and (np.rint(values) == values).all()):
        return None
    return NUMBERED if len(np.unique(values)) == len(values) else None


def is_nearly_unique(n_different: int, n_present: int) -> str | None:
    """Return the note of a column whose texts nearly all differ, None if they do not."""
    return NEARLY_UNIQUE if n_present >= LEAST_ROWS and n_different >= UNIQUE_SHARE * n_present else None
