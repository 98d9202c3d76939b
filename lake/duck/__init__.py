"""DuckDB over a snapshot."""
