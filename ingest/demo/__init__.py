"""The node database that is shipped: small, genuine, of a test network."""
