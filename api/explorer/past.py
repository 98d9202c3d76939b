"""Supports pages as of a past masterchain block: the ``seqno`` parameter and links that keep it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from markupsafe import escape

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import ConversionError, parse_int32, read_arguments

if TYPE_CHECKING:
    from tonlake.api.request.call import ApiRequest, Arguments
    from tonlake.queries.reader import Reader

SEQNO = "seqno"
"""The parameter with the seqno of the masterchain block."""

_TIMELESS = ("/lake", "/sql", "/docs", "/openapi.json", "/readyz", "/explorer/", "/api/")
"""Prefixes of paths that have no past, or another parameter for it."""

_TARGET = re.compile(r'(?<=\shref=")/[^"]*')
_FORM = re.compile(r'<form(?![^>]*(?:method="post"|class="travel"))[^>]*>')
NEWEST = "newest"
"""Fragment of the link that returns to the newest block."""

_PLACES = ("offset", "cursor", "before")
"""Parameters that continue a list; they are dropped when the block changes."""


class Moment(NamedTuple):
    """The block that a page shows, and the links and form fields to change it."""

    path: str
    """Path of the same page as of the newest block."""

    kept: list[tuple[str, str]]
    """Parameters of the page, kept by the form that selects a block."""

    seqno: int | None
    """The past masterchain block; None for the newest."""

    is_timeless: bool


def read_seqno(arguments: Arguments) -> int | None:
    """Return the masterchain block that a page is requested for; None for the newest.

    Raises:
        RequestInvalid: it is not a positive number.
    """
    text = (arguments.last(SEQNO) or "").strip().replace(",", "")
    try:
        seqno = parse_int32(text) if text else None
    except ConversionError as error:
        raise RequestInvalid("seqno is the number of a masterchain block") from error
    if seqno is not None and seqno < 1:
        raise RequestInvalid("seqno is the number of a masterchain block, at least 1")
    return seqno


def describe_moment(request: ApiRequest) -> Moment:
    """Describe the block that a page shows; an invalid ``seqno`` counts as the newest."""
    arguments = read_arguments(request)
    path = request.url.path
    try:
        seqno = read_seqno(arguments)
    except RequestInvalid:
        seqno = None
    chosen = ((name, arguments.last(name)) for name in arguments.values)
    kept = [(name, text) for name, text in chosen if text and name not in (SEQNO, *_PLACES)]
    way = f"{path}?{urlencode(kept)}" if kept else path
    return Moment(way, kept, seqno, is_timeless(path))


def is_timeless(path: str) -> bool:
    """Whether ``path`` has no past: a static file, an API, or a page about files."""
    return path.startswith(_TIMELESS)


def find_utime(reader: Reader, seqno: int) -> int | None:
    """Return the Unix time of a masterchain block; None if it is not in the lake."""
    row = reader.one("explorer/latest_blocks", first=seqno, before=seqno + 1, limit=1)
    return None if row is None else row["utime"]


def keep_past(text: str, seqno: int) -> str:
    """Return the HTML with ``seqno`` added to all links and forms of the explorer."""

    def pin(match: re.Match[str]) -> str:
        path, mark, place = match[0].partition("#")
        if is_timeless(path) or place == NEWEST:
            return match[0]
        sign = "&amp;" if "?" in path else "?"
        return f"{path}{sign}{SEQNO}={seqno}{mark}{place}"

    field = f'<input type="hidden" name="{SEQNO}" value="{escape(seqno)}">'
    return _FORM.sub(lambda match: match[0] + field, _TARGET.sub(pin, text))
