"""From a mixed table to a float matrix, and back to column names and units.

A table is read column by column (`reading`), each column learns how it is written as numbers (`columns`), and the
whole is saved as plain data (`state`). `TableEncoder` puts the three together for scikit-learn.
"""

from tartree.table.columns import OTHER, Boolean, Category, Column, Constant, Feature, Numeric
from tartree.table.encoder import TableEncoder
from tartree.table.parquet import ParquetTable
from tartree.table.scaling import Scaling
from tartree.table.statistics import TableStatistics

__all__ = [
    "OTHER",
    "Boolean",
    "Category",
    "Column",
    "Constant",
    "Feature",
    "Numeric",
    "ParquetTable",
    "Scaling",
    "TableEncoder",
    "TableStatistics",
]
