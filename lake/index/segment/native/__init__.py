"""The extension that writes, opens and reads segments.

Without ``tonlake.lake.index._rows`` (the C files here), or with ``TONLAKE_NATIVE=0``, there is no
index: SQL answers everything.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any


def load() -> Any:  # noqa: ANN401 - the extension, or None
    """Return the extension, or None where it is not built or not wanted."""
    if os.environ.get("TONLAKE_NATIVE", "1") == "0":
        return None
    try:
        return import_module("tonlake.lake.index._rows")
    except ImportError:
        return None


NATIVE = load()
