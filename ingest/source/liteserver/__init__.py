"""Blocks from lite servers, for a machine that has no node."""
