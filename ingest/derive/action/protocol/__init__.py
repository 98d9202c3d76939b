"""One module per protocol: the shapes of its messages, and the roles of the accounts in them."""
