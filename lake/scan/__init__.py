"""Rows of one table in chain order, in batches that a reader can go on behind."""
