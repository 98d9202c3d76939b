"""Commits: rows of a range of masterchain blocks into the lake, all or nothing."""
