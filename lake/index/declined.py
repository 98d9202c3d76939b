"""How the index leaves a question to SQL."""

from __future__ import annotations


class Declined(Exception):
    """The index cannot answer this question, or only slowly."""
