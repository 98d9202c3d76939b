"""Commands on a lake, and their output."""
