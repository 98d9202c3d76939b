"""A TON node's storage as a lake of Parquet files, asked with SQL and served over HTTP.

``tonlake.open`` opens a lake, ``tonlake.demo`` the shipped one, ``tonlake.connect`` one that a
service has; ``tonlake.decode`` reads a message body. They are loaded when they are named, so that
a command loads only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tonlake.api.python.lake import Lake, decode, demo, open  # noqa: A004 - tonlake.open
    from tonlake.api.python.remote import RemoteLake, connect

_PLACES = {
    **dict.fromkeys(("Lake", "decode", "demo", "open"), "tonlake.api.python.lake"),
    **dict.fromkeys(("RemoteLake", "connect"), "tonlake.api.python.remote"),
}
__all__ = ["Lake", "RemoteLake", "connect", "decode", "demo", "open"]


def __getattr__(name: str) -> object:
    """Return one of the names above."""
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'tonlake' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that are there, and those above."""
    return sorted({*globals(), *__all__})
