"""What a request for SQL says: the statement, the form of the answer, and signatures."""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Arguments

SIGNATURES = 20
"""Most signatures of one statement."""


class SqlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement as JSON; ``format`` wins over the header Accept.

    ``signature`` has TL-B constructors, Tact ABIs or names of shipped layouts: messages that follow
    them are tables of the statement.
    """

    query: str
    format: str | None = None
    signature: tuple[str, ...] | str | None = None


def read_body(body: bytes, media_type: str) -> SqlRequest:
    """Return what a body says: JSON, a form, or the statement alone.

    Raises:
        RequestInvalid: it cannot be read.
    """
    try:
        if media_type == "application/json":
            return msgspec.json.decode(body, type=SqlRequest)
        text = body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestInvalid(f"the body cannot be read: {error}") from error
    if media_type == "application/x-www-form-urlencoded":
        fields = Arguments(parse_qsl(text, keep_blank_values=True))
        signatures = tuple(fields.values.get("signature", ()))
        return SqlRequest(fields.last("query") or "", fields.last("format"), signatures or None)
    return SqlRequest(text)


def list_signatures(arguments: Arguments) -> tuple[str, ...]:
    """Return the signatures of a request; the page sends an empty one where there is none.

    Raises:
        RequestInvalid: there are too many.
    """
    given = tuple(text for text in arguments.values.get("signature", ()) if text.strip())
    if len(given) > SIGNATURES:
        raise RequestInvalid(f"a statement takes at most {SIGNATURES} signatures")
    return given
