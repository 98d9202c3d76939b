"""Lakes carried from one place to another: export and import."""
