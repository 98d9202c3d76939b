"""The command ``tonlake``; loads and shows its settings."""
