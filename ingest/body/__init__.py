"""Message bodies: a table of layouts in TL-B, and the decoder and encoder that follow it."""
