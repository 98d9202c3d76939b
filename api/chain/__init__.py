"""Reads of the chain shared by v2 and v3: blocks, states, configuration, get-methods."""
