"""Decoded row groups and cells kept in memory."""
