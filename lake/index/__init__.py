"""The index of a lake: segments, decoded row groups and cells, which may answer instead of SQL."""
