"""Few rows to a Parquet file in C: the bytes that pyarrow would give, in a tenth of its time."""

from tonlake.lake.native import load_extension

NATIVE, _ = load_extension("tonlake.lake.file._parquet")
