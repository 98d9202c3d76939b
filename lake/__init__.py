"""The lake: Parquet files, and the commit log that lists the live ones.

schema/      the single description of every table and column
file/        writes and reads Parquet files
commit/      adds files to the log, atomically
log/         the log, and snapshots: one commit and the files live after it
index/       index of a snapshot, and the answers read from it
duck/        DuckDB views and macros of a snapshot
maintenance/ compaction, pruning, verification
"""
