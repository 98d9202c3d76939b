"""Headers with which clients and shared caches store a response and revalidate it.

An entity tag names the snapshot, by the digest of its last commit, and the request: a lasting
response depends on nothing else. The tag is weak: compressed bodies share it, and it ignores the
time in a response of version 2.
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
"""For requests that name a snapshot: the response never changes."""

TIP_CONTROL = "no-cache"
"""For responses of the newest snapshot: caches may store them, and revalidate every time."""

UNKEPT = (b"cache-control", b"no-store")
"""For errors, and responses that depend on more than the snapshot."""

VARY = b", ".join(
    [b"Accept", b"Accept-Encoding", b"Origin", *sorted(name.title() for name in ANSWER_HEADERS)]
)
_TAG = re.compile(rb'(?:W/)?("[^"]*")')
_OK = 200


def list_validators(scope: Scope, status: int, settings: Settings, version: str) -> list[Header]:
    """Return ``ETag``, ``Cache-Control`` and ``Vary`` of an API response; pages set their own.

    Args:
        scope: The request; its state holds whether the response is lasting, and its snapshot.
        status: Status of the response.
        settings: Settings that responses depend on, and whether a key is required: then no
            shared cache may store a response.
        version: Version of the service: another one may respond differently.
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
    """Return whether a response without ``Cache-Control`` must not be stored by caches."""
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
    """Return the entity tag of a response that depends on more than snapshot and request."""
    return f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def matches(condition: bytes, tag: bytes) -> bool:
    """Return whether an If-None-Match header names a tag, compared weakly (RFC 9110, 13.1.2)."""
    if condition.strip() == b"*":
        return True
    found = _TAG.fullmatch(tag)
    return found is not None and found[1] in _TAG.findall(condition)
