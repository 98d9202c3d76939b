"""How every package names an account: workchain first, then account id."""

from __future__ import annotations

MASTERCHAIN = -1
"""The workchain of the masterchain."""

AccountId = tuple[int, bytes]
"""Workchain and account id, 32 bytes; ids of one workchain sort like these bytes."""
