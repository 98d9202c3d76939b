"""Scans: rows of tables in chain order, over HTTP, in Python and on the command line."""
