"""Folders that hold lakes and exports: local, in object storage, or on a web server."""
