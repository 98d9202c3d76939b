"""One request: its arguments, its snapshot, and the format of its response."""
