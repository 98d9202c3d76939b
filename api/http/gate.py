"""Middleware that checks API keys and rate limits, before even a cached response is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from litestar.enums import ScopeType

from tonlake.api.errors import ApiError, RateExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

FREE_PATHS = frozenset({"/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json"})
FREE_FOLDERS = ("/docs", "/explorer/")
"""Path prefixes of page assets, which need no key and have no rate limit."""

REQUESTS = (ScopeType.HTTP, ScopeType.WEBSOCKET)
"""Scope types of requests; the third type is the server's lifespan."""

FORWARDED = "forwarded"
"""Key in the scope's state of a request forwarded by a proxy, which is not a local request."""

REFUSAL, KEY_ID = "refusal", "key_id"
"""Keys in the scope's state: the error that refuses a request, and the id of its API key."""

QUOTA = "quota"
"""Key in the scope's state of the client's quota, if rates are limited."""

QUOTA_HEADERS = (b"RateLimit-Limit", b"RateLimit-Remaining", b"RateLimit-Reset")


class Quota(NamedTuple):
    """A client's rate limit: requests per second, requests left, seconds until all are restored."""

    limit: int
    remaining: int
    reset_s: int


class Gate:
    """Middleware that notes in a request's state why it is refused, and reports its quota.

    The error is raised inside the application, by `refuse`, so that it is rendered like any other.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], None]) -> None:
        """Store ``check``, which notes the id of a request's key and raises if it is refused."""
        self._app, self._check = app, check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] in REQUESTS and not is_free(scope):
            try:
                self._check(scope)
            except ApiError as error:
                scope.setdefault("state", {})[REFUSAL] = error
            quota = scope.get("state", {}).get(QUOTA)
            send = send if quota is None else _add_quota(send, quota)
        await self._app(scope, receive, send)


def _add_quota(send: Send, quota: Quota) -> Send:
    """Return a ``send`` that adds the quota's headers to the response."""
    fields = [
        (name.lower(), b"%d" % count) for name, count in zip(QUOTA_HEADERS, quota, strict=True)
    ]

    async def send_with_quota(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *fields]
        await send(message)

    return send_with_quota


def is_free(scope: Scope) -> bool:
    """Return whether a request needs no key: monitoring, assets, and CORS preflights."""
    path = scope["path"]
    return path in FREE_PATHS or path.startswith(FREE_FOLDERS) or scope.get("method") == "OPTIONS"


def refuse(app: ASGIApp) -> ASGIApp:
    """Return a middleware that raises the error noted for a request."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        check_refusal(scope)
        await app(scope, receive, send)

    return call


def check_refusal(scope: Scope) -> None:
    """Raise the error noted for a request, if any, and set ``Retry-After``."""
    state: dict[str, Any] = scope.setdefault("state", {})
    error: ApiError | None = state.get(REFUSAL)
    if error is None:
        return
    if isinstance(error, RateExceeded):
        state["headers"] = {"Retry-After": str(error.retry_after_s)}
    raise error
