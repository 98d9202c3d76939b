"""Looks at a node, a lake and a configuration, and says what to do."""
