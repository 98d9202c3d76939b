"""Values as text: addresses, hashes, encodings, stacks of get-methods."""
