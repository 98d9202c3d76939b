"""Decodes message bodies with a table of layouts in TL-B."""
