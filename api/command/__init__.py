"""The command ``tonlake`` as a whole: how its settings are composed, loaded and shown."""
