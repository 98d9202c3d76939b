"""Commands about a lake, and what they show."""
