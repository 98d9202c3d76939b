"""Cells: reads and writes bags of cells, slices and dictionaries, and stores cells as rows.

Invalid bytes or cells raise BocError; a read past the end of a cell raises CellUnderflow.
"""
