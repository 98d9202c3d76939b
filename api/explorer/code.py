"""Draws QR codes as SVG paths."""

from __future__ import annotations

import msgspec
import segno

QUIET = 4
"""Width of the quiet zone in modules (ISO/IEC 18004)."""


class Code(msgspec.Struct, frozen=True):
    """A QR code: side length in modules, quiet zone included, and the path of dark modules."""

    size: int
    path: str


def draw_code(text: str) -> Code:
    """Return the QR code of ``text`` with error correction level M."""
    modules = [list(row) for row in segno.make(text, error="m", micro=False).matrix]
    path = "".join(
        f"M{x + QUIET} {y + QUIET}h1v1h-1z"
        for y, row in enumerate(modules)
        for x, dark in enumerate(row)
        if dark
    )
    return Code(len(modules) + 2 * QUIET, path)
