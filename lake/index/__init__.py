"""The index of a lake: segments, and decoded row groups and cells, as an alternative to SQL."""
