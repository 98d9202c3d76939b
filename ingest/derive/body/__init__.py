"""Message bodies: a table of layouts in TL-B, and the decoder that follows it."""
