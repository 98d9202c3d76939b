"""Queries a snapshot with DuckDB."""
