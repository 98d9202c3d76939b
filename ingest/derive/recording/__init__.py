"""Decodes recorded traces into rows, for classification without a node."""
