"""Pages as of a past masterchain block: which one is asked for, and links that stay in the past."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from markupsafe import escape

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import read_arguments
from tonlake.api.request.params import ConversionError, parse_int32

if TYPE_CHECKING:
    from tonlake.api.request.call import ApiRequest
    from tonlake.api.request.params import Arguments
    from tonlake.queries.reader import Reader

SEQNO = "seqno"
"""The parameter that names the masterchain block."""

_TIMELESS = ("/lake", "/sql", "/docs", "/openapi.json", "/readyz", "/explorer/", "/api/")
"""Beginnings of paths that have no past, or another parameter for it."""

_TARGET = re.compile(r'(?<=\shref=")/[^"]*')
_FORM = re.compile(r'<form(?![^>]*(?:method="post"|class="travel"))[^>]*>')
NEWEST = "newest"
"""Fragment of the link that leads back from the past."""

_PLACES = ("offset", "cursor", "before")
"""Parameters that say where a list goes on: another block has another list."""


class Moment(NamedTuple):
    """What the bar of a page shows about its block."""

    path: str
    """The same page as of the newest block."""

    kept: list[tuple[str, str]]
    """Parameters of the page, for the form that chooses a block."""

    seqno: int | None
    """The past block; None where the page shows the newest."""

    is_timeless: bool


def read_seqno(arguments: Arguments) -> int | None:
    """Return the masterchain block that a page is asked for; None for the newest.

    Raises:
        RequestInvalid: it is no number.
    """
    text = (arguments.last(SEQNO) or "").strip().replace(",", "")
    try:
        seqno = parse_int32(text) if text else None
    except ConversionError as error:
        raise RequestInvalid("seqno is the number of a masterchain block") from error
    if seqno is not None and seqno < 1:
        raise RequestInvalid("seqno is the number of a masterchain block, from 1 on")
    return seqno


def describe_moment(request: ApiRequest) -> Moment:
    """Return what a page says about its block, whether it can be shown or not."""
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
    """Whether a page has no past: it shows files, or is no page of the explorer."""
    return path.startswith(_TIMELESS)


def find_utime(reader: Reader, seqno: int) -> int | None:
    """Return the time of a masterchain block in Unix seconds; None where the lake lacks it."""
    row = reader.one("explorer/latest_blocks", first=seqno, before=seqno + 1, limit=1)
    return None if row is None else row["utime"]


def keep_past(text: str, seqno: int) -> str:
    """Return the HTML of a part of a page whose links and forms lead to the same block."""

    def pin(match: re.Match[str]) -> str:
        path, mark, place = match[0].partition("#")
        if is_timeless(path) or place == NEWEST:
            return match[0]
        sign = "&amp;" if "?" in path else "?"
        return f"{path}{sign}{SEQNO}={seqno}{mark}{place}"

    field = f'<input type="hidden" name="{SEQNO}" value="{escape(seqno)}">'
    return _FORM.sub(lambda match: match[0] + field, _TARGET.sub(pin, text))
