"""Tables that a person added to the lake, over HTTP."""
