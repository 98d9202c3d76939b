"""QR codes as paths of SVG."""

from __future__ import annotations

import msgspec
import segno

QUIET = 4
"""Empty modules around a code (ISO/IEC 18004)."""


class Code(msgspec.Struct, frozen=True):
    """A QR code: its side in modules, quiet zone included, and the path of the dark ones."""

    size: int
    path: str


def draw_code(text: str) -> Code:
    """Return the QR code of a text, with error correction M."""
    modules = [list(row) for row in segno.make(text, error="m", micro=False).matrix]
    path = "".join(
        f"M{x + QUIET} {y + QUIET}h1v1h-1z"
        for y, row in enumerate(modules)
        for x, dark in enumerate(row)
        if dark
    )
    return Code(len(modules) + 2 * QUIET, path)
