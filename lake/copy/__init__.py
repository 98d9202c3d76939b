"""Copies a lake from a folder, object storage or a web server, once or as it grows."""
