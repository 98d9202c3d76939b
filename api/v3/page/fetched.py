"""What was fetched from the addresses that tokens name, where somebody had it fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.request.call import Call

_TABLE = "offchain_metadata"


class Fetched(NamedTuple):
    """What came of an address: ``is_final`` tells that nothing more is going to come of it now."""

    content: Mapping[str, object]
    is_valid: bool
    is_final: bool


NOT_FETCHED = Fetched({}, is_valid=False, is_final=False)
NOTHING_MORE = Fetched({}, is_valid=True, is_final=True)
"""Of content that is on the chain alone."""


def read_fetched(call: Call, contents: Iterable[Mapping[str, object] | None]) -> dict[str, Fetched]:
    """Return what was fetched from the ``uri`` of each content, those alone that were asked."""
    # Most lakes have nobody who fetches: they are not asked.
    if not call.reader.snapshot.files[_TABLE]:
        return {}
    uris = {str(content["uri"]) for content in contents if content and "uri" in content}
    if not uris:
        return {}
    rows = call.reader.rows("v3/offchain_metadata", uris=sorted(uris))
    return {row["uri"]: _read_row(row) for row in rows}


def _read_row(row: Mapping[str, Any]) -> Fetched:
    text = row["content"]
    return Fetched(
        {} if text is None else msgspec.json.decode(text, type=dict[str, object]),
        is_valid=row["state"] == "fetched",
        is_final=row["state"] != "failed" or not row["is_tried_again"],
    )
