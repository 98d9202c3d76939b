"""Scans: rows in chain order, in batches after which a reader can resume."""
