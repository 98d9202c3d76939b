"""Pending messages: sent, but not yet in a block; and their emulated traces."""
