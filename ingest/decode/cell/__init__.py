"""Cells: bags of cells read and written, slices, hash maps, and cells as rows.

Invalid bytes or cells raise BocError throughout; reads past the end of a cell CellUnderflow.
"""
