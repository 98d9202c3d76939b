"""The format of index segments, and access to their records."""
