"""The outermost layer: who may ask, before anything answers, cached responses included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from litestar.enums import ScopeType

from tonlake.api.errors import ApiError, RateExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

FREE_PATHS = frozenset({"/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json"})
FREE_FOLDERS = ("/docs", "/explorer/")
"""Monitoring, and what a page loads beside itself, needs no key and has no limit."""

REQUESTS = (ScopeType.HTTP, ScopeType.WEBSOCKET)
"""What is answered; the server also announces its begin and its end."""

FORWARDED = "forwarded"
"""Key in the scope's state of a request that a proxy passed on: it is not of this machine."""

REFUSAL, KEY_ID = "refusal", "key_id"
"""Where the scope's state holds why a request is refused, and the id of its key."""

QUOTA = "quota"
"""Where the scope's state holds the quota of its client, if rates are limited."""

QUOTA_HEADERS = (b"RateLimit-Limit", b"RateLimit-Remaining", b"RateLimit-Reset")


class Quota(NamedTuple):
    """What a client may ask for: requests a second, those left now, seconds until all are back."""

    limit: int
    remaining: int
    reset_s: int


class Gate:
    """Middleware that notes in a request's state why it is refused, and reports its quota.

    The refusal is raised inside of the application, by `refuse`, which writes it as it writes
    every error.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], None]) -> None:
        """``check`` notes the id of a request's key, and raises why the request is refused."""
        self._app, self._check = app, check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        if scope["type"] in REQUESTS and not is_free(scope):
            try:
                self._check(scope)
            except ApiError as error:
                scope.setdefault("state", {})[REFUSAL] = error
            quota = scope.get("state", {}).get(QUOTA)
            send = send if quota is None else _add_quota(send, quota)
        await self._app(scope, receive, send)


def _add_quota(send: Send, quota: Quota) -> Send:
    """Return what sends an answer with the fields of a quota in its head."""
    fields = [
        (name.lower(), b"%d" % count) for name, count in zip(QUOTA_HEADERS, quota, strict=True)
    ]

    async def send_with_quota(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *fields]
        await send(message)

    return send_with_quota


def is_free(scope: Scope) -> bool:
    """Return whether a request needs no key: monitoring, assets, and what browsers ask first."""
    path = scope["path"]
    return path in FREE_PATHS or path.startswith(FREE_FOLDERS) or scope.get("method") == "OPTIONS"


def refuse(app: ASGIApp) -> ASGIApp:
    """Return a middleware of the application that raises what was found against a request."""

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
