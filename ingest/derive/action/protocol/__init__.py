"""One module per protocol: the shapes of its messages, and who is who in them."""
