"""DuckDB over a snapshot: views, macros, and statements that people write."""
