"""The C decoder of bodies: runs the compiled layouts from a bag of cells to JSON.

The extension ``tonlake.ingest.derive.body._bodies`` (the C files here) is optional. It declines
damaged, rare or very large bodies, and those near a limit, which the Python codecs decode.
``TONLAKE_NATIVE=0`` disables the extension.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from tonlake.ingest.derive.body.program import Op


def load() -> Any:  # noqa: ANN401 - the extension, or None
    """Return the extension; None if it is not built, outdated or disabled."""
    if os.environ.get("TONLAKE_NATIVE", "1") == "0":
        return None
    try:
        extension = import_module("tonlake.ingest.derive.body._bodies")
    except ImportError:
        return None
    return extension if len(Op) == extension.OPERATIONS else None


NATIVE = load()
