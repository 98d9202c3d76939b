"""TL-B of a block to rows of the lake."""
