"""Formats amounts, outcomes, actions and message bodies as text, independent of any page."""
