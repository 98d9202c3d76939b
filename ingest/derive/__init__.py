"""Derived rows: traces, contracts and actions, in explicit stages."""
