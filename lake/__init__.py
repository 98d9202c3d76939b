"""The lake: rows in Parquet files, and the log that lists those that are live.

schema/      the one description of every table and column
writer       rows to Parquet files
commit       files into the log, atomically
snapshot     what a reader sees: one commit and the files it names
verify       every file against its digest
views        hand-off to the DuckDB command line and other engines
"""
