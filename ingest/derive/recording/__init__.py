"""Recorded traces as rows, for classification without a node."""
