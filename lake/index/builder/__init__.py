"""Builds index segments from data files."""
