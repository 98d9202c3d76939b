"""Parquet files, written and read."""
