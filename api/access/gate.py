"""The gate in front of every answer, kept ones included: keys first, then limits."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from api.access.bucket import TokenBuckets, is_own_machine, name_address
from api.access.keyring import Keyring
from api.errors import ApiError, KeyFileInvalid, KeyMissing, KeyUnknown, RateExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Receive, Scope, Send

    from api.settings import AccessSettings

FREE_PATHS = frozenset({"/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json"})
FREE_FOLDERS = ("/docs", "/explorer/")
"""Who watches the service, and what a page loads beside itself, needs no key and has no limit."""

HEADER, PARAMETER = b"x-api-key", "api_key"
REFUSAL, KEY_ID = "refusal", "key_id"
"""Where the scope's state says why a request is refused, and whose key it came with."""

KEY_WANTED = "API key is required: send it in the header X-API-Key"


class Gate:
    """Decides whether a request is answered; used by the one thread that takes requests."""

    def __init__(
        self,
        settings: AccessSettings,
        host: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys; ``host`` is the address that the service listens on.

        Raises:
            KeyFileInvalid: the file of keys cannot be read, or is missing in the settings.
        """
        if settings.keys_required and not settings.keys_file:
            raise KeyFileInvalid("[access] keys_required needs keys_file: the file of keys")
        self._keys = Keyring(Path(settings.keys_file), clock) if settings.keys_file else None
        self._required = settings.keys_required
        reachable = not is_own_machine(host)
        self._limits = {"on": True, "off": False, "auto": reachable}[settings.rate_limits]
        self._anonymous_rps = settings.anonymous_rps
        self._buckets = TokenBuckets(clock)

    def admit(self, scope: Scope) -> None:
        """Let a request pass, or note in its scope's state why it is refused."""
        try:
            self._check(scope)
        except ApiError as error:
            state: dict[str, Any] = scope.setdefault("state", {})
            state[REFUSAL] = error

    def _check(self, scope: Scope) -> None:
        path = scope["path"]
        if path in FREE_PATHS or path.startswith(FREE_FOLDERS) or scope.get("method") == "OPTIONS":
            return
        if self._keys is None and not self._limits:
            return
        key = read_key(scope)
        client = scope.get("client")
        asker, rps = name_address(client[0]) if client else "", self._anonymous_rps
        record = self._keys.find(key) if key and self._keys is not None else None
        if record is not None:
            asker, rps = f"key {record.id}", record.rps
            scope.setdefault("state", {})[KEY_ID] = record.id
        if self._limits and (wait_s := self._buckets.take(asker, rps)):
            raise RateExceeded(rps, math.ceil(wait_s))
        if record is not None:
            return
        if key and self._keys is not None:
            raise KeyUnknown("API key does not exist")
        if self._required:
            raise KeyMissing(KEY_WANTED)


def read_key(scope: Scope) -> str:
    """Return the key that a request came with, in its header or else its query; "" without."""
    for name, value in scope["headers"]:
        if name == HEADER and value.strip():
            return value.strip().decode("latin-1")
    query = scope["query_string"]
    if PARAMETER.encode() not in query:
        return ""
    given = dict(parse_qsl(query.decode("latin-1")))
    return given.get(PARAMETER, "").strip()


def refuse(app: ASGIApp) -> ASGIApp:
    """Return a middleware that raises what the gate found against a request."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        check_refusal(scope)
        await app(scope, receive, send)

    return call


def check_refusal(scope: Scope) -> None:
    """Raise what was found against a request, if anything, and say when to come again."""
    state: dict[str, Any] = scope.setdefault("state", {})
    error: ApiError | None = state.get(REFUSAL)
    if error is None:
        return
    if isinstance(error, RateExceeded):
        state["headers"] = {"Retry-After": str(error.retry_after_s)}
    raise error
