"""Cells: bags of cells read and written, slices, hash maps, and cells as rows."""
