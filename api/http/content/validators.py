"""Headers that let clients and shared caches keep an answer, and ask whether it still holds.

A tag names the snapshot, by the digest of its last commit, and the request: an answer that lasts
follows from both. It is a weak one: packed bodies have the same, and the time in an answer of
version 2 is not part of it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from tonlake.api.request.call import ANSWER_HEADERS, LASTING, PINNED, TAGGED
from tonlake.api.request.table_format import choose_format

if TYPE_CHECKING:
    from litestar.types import Scope

    from tonlake.api.settings import Settings

Header = tuple[bytes, bytes]

PINNED_CONTROL = "max-age=31536000, immutable"
"""An answer of a snapshot that the request names never changes."""

TIP_CONTROL = "no-cache"
"""An answer of the newest snapshot may be kept, and is asked for again every time."""

UNKEPT = (b"cache-control", b"no-store")
"""Errors, and what follows from more than the snapshot."""

VARY = b", ".join(
    [b"Accept", b"Accept-Encoding", b"Origin", *sorted(name.title() for name in ANSWER_HEADERS)]
)
_TAG = re.compile(rb'(?:W/)?("[^"]*")')
_OK = 200


def list_validators(scope: Scope, status: int, settings: Settings, version: str) -> list[Header]:
    """Return tag, lifetime and ``Vary`` of an answer of the API; pages set their own.

    Args:
        scope: The request; its state says whether the answer lasts, and of which snapshot it is.
        status: Status of the answer.
        settings: Those that answers depend on, and whether a key is required: no shared cache
            keeps an answer then.
        version: That of the service, whose next one may answer otherwise.
    """
    state: dict[str, Any] = scope.get("state") or {}
    if status != _OK or LASTING not in state:
        return []
    control = PINNED_CONTROL if state[PINNED] else TIP_CONTROL
    visibility = "private" if settings.access.keys_required else "public"
    http = settings.http
    tagged = f"{state[TAGGED]} {version} {http.opcode_format} {http.testnet} {http.max_limit}"
    return [
        (b"etag", _make_tag(scope, tagged)),
        (b"cache-control", f"{visibility}, {control}".encode()),
        (b"vary", VARY),
    ]


def is_unkept(scope: Scope) -> bool:
    """Return whether an answer that states no lifetime is one that no cache may keep."""
    return scope["path"].startswith("/api/")


def _make_tag(scope: Any, tagged: str) -> bytes:  # noqa: ANN401 - any scope
    digest = hashlib.blake2b(tagged.encode(), digest_size=12)
    headers = scope["headers"]
    accepted = next((value for name, value in headers if name == b"accept"), b"")
    parts = [scope["path"].encode(), scope["query_string"]]
    parts.append((choose_format(accepted.decode("latin-1")) or "").encode())
    parts += sorted(name + b":" + value for name, value in headers if name in ANSWER_HEADERS)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return b'W/"%b"' % digest.hexdigest().encode()


def tag_body(body: bytes) -> str:
    """Return the tag of an answer that depends on more than snapshot and request."""
    return f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def matches(condition: bytes, tag: bytes) -> bool:
    """Return whether an If-None-Match header names a tag, compared weakly (RFC 9110, 13.1.2)."""
    if condition.strip() == b"*":
        return True
    found = _TAG.fullmatch(tag)
    return found is not None and found[1] in _TAG.findall(condition)
