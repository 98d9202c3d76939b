"""Checks of a node, a lake and a configuration, each with advice."""
