"""JSON bodies of requests, read as the peer reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from tonlake.api.errors import CredentialMissing, RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

R = TypeVar("R", bound=msgspec.Struct)


def read_body(body: bytes, kind: type[R], required: Sequence[str] = ()) -> R:
    """Return the object of a body; a field that is null is as good as absent.

    Clients write null for what they leave out, and the peer reads it so.

    Raises:
        RequestInvalid: the body is no such object.
        CredentialMissing: a field that is required is absent or empty.
    """
    try:
        fields = msgspec.json.decode(body)
        if isinstance(fields, dict):
            fields = {name: value for name, value in fields.items() if value is not None}
        asked = msgspec.convert(fields, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error
    for name in required:
        if not getattr(asked, name):
            raise CredentialMissing(f"{name} is required")
    return asked
