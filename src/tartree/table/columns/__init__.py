"""What each kind of column has learnt: one class each, and the list of them."""

from tartree.table.columns.boolean import Boolean
from tartree.table.columns.category import Category
from tartree.table.columns.column import Column
from tartree.table.columns.constant import Constant
from tartree.table.columns.numeric import Numeric

#: Each class by its `kind`.
COLUMNS: dict[str, type[Column]] = {column.kind: column for column in (Numeric, Boolean, Category, Constant)}


def column_class(raw_kind: str) -> type[Column]:
    """Return the class that learns from raw columns of a kind.

    Examples
    --------
    >>> column_class("date").kind, column_class("empty").kind
    ('numeric', 'constant')
    """
    return Constant if raw_kind == "empty" else COLUMNS.get(raw_kind, Numeric)
