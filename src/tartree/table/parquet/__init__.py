"""Tables in Parquet files, which need not fit into memory."""

from tartree.table.parquet.parquet_table import Block, ParquetTable, as_parquet, is_parquet

__all__ = ["Block", "ParquetTable", "as_parquet", "is_parquet"]
