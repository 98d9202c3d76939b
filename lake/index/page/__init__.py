"""Pages over several segments."""
