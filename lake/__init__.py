"""The lake: Parquet files, and the commit log that lists the live ones."""
