"""Turns a TON node's storage into a lake of Parquet files, queried with SQL and served over HTTP.

``tonlake.open`` opens a lake, ``tonlake.demo`` the shipped one, ``tonlake.connect`` the lake of a
running service; ``tonlake.decode`` decodes a message body. They are loaded on first access, so that
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
    """Import and return one of the names in ``__all__``."""
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'tonlake' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names already loaded and those in ``__all__``."""
    return sorted({*globals(), *__all__})
