"""Few rows to a Parquet file in C: the bytes that pyarrow would give, in a tenth of its time.

The extension ``tonlake.lake.file._parquet`` (the C files here) is optional;
``TONLAKE_NATIVE=0`` disables it.
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
        return import_module("tonlake.lake.file._parquet")
    except ImportError:
        return None


NATIVE = load()
