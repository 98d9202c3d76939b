"""Index segments built from data files."""
