"""From a mixed table to a float matrix, and back to column names and units.

A table is read column by column (`raw_table`, `raw_column`), each column learns how it is written as numbers
(`columns`, and `quantities` of numbers), and `TableEncoder` puts them together for scikit-learn.
"""

from tartree.table.columns.boolean import Boolean
from tartree.table.columns.category import Category
from tartree.table.columns.column import Column
from tartree.table.columns.constant import Constant
from tartree.table.columns.numeric import Numeric
from tartree.table.encoder import ColumnWarning, TableEncoder
from tartree.table.feature import OTHER, Feature
from tartree.table.parquet import ParquetTable
from tartree.table.scales import Scaling
from tartree.table.statistics import TableStatistics
from tartree.table.table_summary import ColumnDescription, TableSummary

__all__ = [
    "OTHER",
    "Boolean",
    "Category",
    "Column",
    "ColumnDescription",
    "ColumnWarning",
    "Constant",
    "Feature",
    "Numeric",
    "ParquetTable",
    "Scaling",
    "TableEncoder",
    "TableStatistics",
    "TableSummary",
]
