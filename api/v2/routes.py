"""The routes of version 2, and how it says errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Response

if TYPE_CHECKING:
    from api.call import ApiRequest

routes: list[Any] = []


def answer_error(_request: ApiRequest, status: int, text: str) -> Response[bytes]:
    """Answer an error in version 2's envelope."""
    body = {"ok": False, "error": text, "code": status, "@extra": "_"}
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json")
