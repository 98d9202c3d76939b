"""Who may ask, and how often: API keys and limits."""
