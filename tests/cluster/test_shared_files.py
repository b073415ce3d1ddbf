"""Paths of files that hold on every node."""

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.dataset import dataset
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tartree.cluster.shared_files import shared_table


def test_files_of_a_store_keep_their_names(tmp_path):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "0.parquet")
    store = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    assert shared_table(dataset("0.parquet", filesystem=store)).files == ["0.parquet"]
    assert shared_table(str(tmp_path)).files == [str(tmp_path / "0.parquet")]
