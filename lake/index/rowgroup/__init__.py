"""Decoded row groups and cells, cached in memory."""
