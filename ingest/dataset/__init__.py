"""Ingests the public data set of the chain: Parquet files by table and UTC day."""
