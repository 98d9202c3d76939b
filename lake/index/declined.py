"""Raised by the index to leave a query to SQL."""

from __future__ import annotations


class Declined(Exception):
    """The index cannot answer this query, or only slowly."""
