"""Segments: the container, the declared tables, and access to their rows."""
