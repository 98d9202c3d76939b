"""User-defined tables over HTTP."""
