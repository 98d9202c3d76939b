"""Files of the lake over HTTP, for copies of it."""
