"""Reads and writes Parquet files."""
