"""Commits: add the rows of a range of masterchain blocks to the lake, all or nothing."""
