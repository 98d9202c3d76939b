"""Named queries: one SQL statement per file, and their loader and reader."""
