"""SQL over HTTP: every statement in a process of its own that can read the lake and do no more."""
