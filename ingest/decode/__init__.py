"""Decodes the bytes of blocks to rows: cells, TL-B, and the same in C."""
