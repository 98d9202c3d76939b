"""The shipped node database: small, genuine, from a test network."""
