"""Blocks that a node has, but has not archived yet: its temporary packages."""
