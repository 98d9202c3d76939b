"""Off-chain token metadata, fetched on request."""
