"""Queries: how a question is asked. One statement a file, and the one loader."""
