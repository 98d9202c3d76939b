"""Digests of the hand-off files, in the last lines of ``views.sql``.

No commit lists these files, so they carry the digests that reveal bit rot.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from tonlake.lake.file.regular import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VIEWS_FILE = "views.sql"
CATALOG_FILE = "catalog.duckdb"

_SEAL = re.compile(
    rb"-- SHA-256 of catalog\.duckdb: ([0-9a-f]{64})\n"
    rb"-- SHA-256 of the lines above: ([0-9a-f]{64})\n\Z"
)
_LAST_LINE_BYTES = len(b"-- SHA-256 of the lines above: \n") + 64
_AGAIN = "`tonlake views` rewrites it"


def seal_script(text: str, catalog: Path) -> bytes:
    """Return the bytes of ``views.sql``: the script, then the digests of catalogue and script."""
    sealed = f"{text}-- SHA-256 of catalog.duckdb: {_digest(read_regular(catalog))}\n".encode()
    return sealed + f"-- SHA-256 of the lines above: {_digest(sealed)}\n".encode()


def find_changed(lake_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the hand-off files that are not as they were written, each with the reason.

    Yield nothing if the lake has none.
    """
    views, catalog = _read(lake_dir / VIEWS_FILE), _read(lake_dir / CATALOG_FILE)
    if views is None and catalog is None:
        return
    seal = None if views is None else _SEAL.search(views)
    if views is None:
        yield VIEWS_FILE, f"it is missing, although {CATALOG_FILE} exists; {_AGAIN}"
    elif seal is None:
        yield VIEWS_FILE, f"it does not end with its digest; {_AGAIN}"
    elif _digest(views[:-_LAST_LINE_BYTES]) != seal[2].decode():
        yield VIEWS_FILE, f"its bytes do not match its digest; {_AGAIN}"
    elif catalog is None:
        yield CATALOG_FILE, f"it is missing, although {VIEWS_FILE} exists; {_AGAIN}"
    elif _digest(catalog) != seal[1].decode():
        yield CATALOG_FILE, f"its bytes do not match the digest in {VIEWS_FILE}; {_AGAIN}"


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file; empty if it cannot be read, None if it does not exist."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
