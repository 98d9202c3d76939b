"""Scans: rows of one table in chain order, over HTTP, in Python and as a command."""
