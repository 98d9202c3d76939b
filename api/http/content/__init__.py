"""Response content: caching, compression, and validators for conditional requests."""
