"""Folders that lakes are carried to and read from: local ones, and object storage."""
