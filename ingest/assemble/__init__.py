"""Decoded blocks in the order of the chain, cut into commits."""
