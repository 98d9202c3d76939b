"""One segment of the index: its format, and the records in it."""
