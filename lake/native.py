"""Loads the optional C extensions; ``TONLAKE_NATIVE=0`` disables them all."""

import os
from importlib import import_module
from typing import Any


def load_extension(name: str) -> tuple[Any, str]:
    """Return the extension module ``name``, or None and the reason why it is not used."""
    if os.environ.get("TONLAKE_NATIVE", "1") == "0":
        return None, "TONLAKE_NATIVE=0"
    try:
        return import_module(name), ""
    except ImportError as error:
        return None, f"the extension is not built: {error}"
