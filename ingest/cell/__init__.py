"""Bags of cells: read, hash, walk and write them."""
