"""Copies lakes between places: export, import, and pull."""
