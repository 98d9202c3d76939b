"""What both versions of the API read of the chain."""
