"""A TON node's storage as a lake of Parquet files, asked with SQL and served over HTTP.

``tonlake.open`` opens a lake, ``tonlake.demo`` the shipped one; ``tonlake.decode`` reads a message
body. They are loaded when they are named, so that a command loads only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tonlake.api.python.lake import Lake, decode, demo, open  # noqa: A004 - tonlake.open

__all__ = ["Lake", "decode", "demo", "open"]


def __getattr__(name: str) -> object:
    """Return one of the names above."""
    if name in __all__:
        return getattr(import_module("tonlake.api.python.lake"), name)
    raise AttributeError(f"module 'tonlake' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that are there, and those above."""
    return sorted({*globals(), *__all__})
