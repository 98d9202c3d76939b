"""Pages for people: the lake as an explorer, written by the server, working without any script."""
