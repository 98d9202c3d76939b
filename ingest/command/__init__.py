"""Commands that fill a lake."""
