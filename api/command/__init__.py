"""The command ``tonlake``: how its settings are composed, loaded and shown."""
