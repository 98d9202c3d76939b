"""The index of a lake: segments and cells, as an alternative to SQL."""
