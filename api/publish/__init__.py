"""The lake's own files over HTTP, for copies of it."""
