"""Converts values to and from text: addresses, hashes, encodings, stacks of get-methods."""
