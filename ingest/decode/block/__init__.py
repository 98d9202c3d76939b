"""Decodes the TL-B of blocks to rows of the lake."""
