"""Accurate and readable trees for tables."""

from tartree.structure import Structure

__all__ = ["Structure"]
__version__ = "0.1.0"
