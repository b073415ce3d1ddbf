"""What the numbers of a column measure: one class each, and the list of them."""

from tartree.table.quantities.quantity import Number, Quantity
from tartree.table.quantities.times import Date, Datetime, Duration, TimeOfDay, UtcDatetime

#: Each quantity by its name, which is the `unit` of columns and features.
QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity for quantity in (Number(), Date(), Datetime(), UtcDatetime(), Duration(), TimeOfDay())
}


def joined_kind(kind: str, other: str) -> str | None:
    """Return the kind of a column whose chunks are of these two kinds; None if there is none.

    Examples
    --------
    >>> joined_kind("date", "datetime"), joined_kind("date", "number")
    ('datetime', None)
    """
    if kind == other:
        return kind
    return next((q.name for q in QUANTITIES.values() if q.is_joined and {kind, other} <= q.families), None)
