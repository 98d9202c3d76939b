"""Fetches off-chain token metadata on request."""
