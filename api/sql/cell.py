"""Values of a result as the page shows them: as text, and linked to their page in the explorer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from tonlake.api.errors import AddressInvalid
from tonlake.api.text.address import name_workchain, parse_address

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_CHARACTERS = 120
"""Values that are longer are cut in the table of the page."""

_HASH = re.compile(r"[0-9a-fA-F]{64}")
_BASE64_HASH = re.compile(r"[-_+/0-9A-Za-z]{43}=")
_ADDRESS = re.compile(r"-?[0-9]{1,10}:[0-9a-fA-F]{64}|[-_+/0-9A-Za-z]{48}")
_HASH_PAGES = {
    "hash": "/transaction/",
    "tx_hash": "/transaction/",
    "last_tx_hash": "/transaction/",
    "trace_id": "/trace/",
    "trace": "/trace/",
}
"""Pages by the name of the column; the search finds all other hashes."""


class Cell(msgspec.Struct, frozen=True):
    """A value: its text, None for NULL, and the path of its page, if it has one."""

    text: str | None
    path: str | None = None


def write_row(names: Sequence[str], row: Sequence[Any]) -> list[Cell]:
    """Return the cells of one row."""
    values = dict(zip(names, row, strict=True))
    return [
        Cell(write_value(value), find_page(name, value, values))
        for name, value in zip(names, row, strict=True)
    ]


def write_value(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Return a value as text; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def find_page(name: str, value: object, row: dict[str, Any]) -> str | None:
    """Return the path of the page about an address or a hash; None for any other value.

    Account ids are addresses with the workchain that stands in the row beside them.
    """
    if not isinstance(value, str):
        return None
    if _ADDRESS.fullmatch(value):
        return _link_address(value)
    if _BASE64_HASH.fullmatch(value):
        return f"/search?q={quote(value, safe='')}"
    if not _HASH.fullmatch(value):
        return None
    workchain = row.get(name_workchain(name))
    if isinstance(workchain, int):
        return _link_address(f"{workchain}:{value}")
    page = _HASH_PAGES.get(name)
    return f"{page}{value.lower()}" if page else f"/search?q={value.lower()}"


def _link_address(text: str) -> str | None:
    """Return the page of an account; None for what only looks like an address."""
    try:
        return f"/account/{quote(str(parse_address(text)))}"
    except AddressInvalid:
        return None
