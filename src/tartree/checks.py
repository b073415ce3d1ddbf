"""Checks of parameters that every room uses. Imports nothing of the package, and no numpy."""

import numbers
from typing import Any


def check_integer(name: str, value: Any, least: int) -> int:
    """Return `value` as an int if it is an integer of at least `least`.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    value : Any
        Value of the parameter. Integers of numpy are accepted, booleans are not.
    least : int
        Smallest value allowed.

    Returns
    -------
    int
        The value.

    Raises
    ------
    ValueError
        If the value is no integer, or too small.

    Examples
    --------
    >>> check_integer("depth", 3, 1)
    3
    >>> check_integer("depth", 0, 1)
    Traceback (most recent call last):
    ...
    ValueError: depth must be an integer of at least 1, got 0
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
