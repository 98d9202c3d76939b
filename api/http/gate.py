"""The outermost middleware: who asks, and may they? Proxies, API keys and rate limits.

The client of a forwarded request is the one that a trusted proxy names. A request forwarded by any
proxy, trusted or not, is never local, wherever its connection comes from. Refusals are decided
before even a cached response is sent.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tonlake.api.access import Keyring
from tonlake.api.errors import ApiError, KeyFileInvalid, KeyRefused, RateExceeded
from tonlake.api.http.address import is_own_machine, name_address
from tonlake.api.http.server import CONNECTION, Connection
from tonlake.api.settings import AccessSettings
from tonlake.lake.errors import SettingsError

FREE_PATHS = frozenset({"/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json"})
FREE_FOLDERS = ("/docs", "/explorer/")
"""Path prefixes of page assets, which need no key and have no rate limit."""

STREAMS = ("/api/streaming/v2", "/api/scan")
"""Path prefixes of streams: they live as long as their clients want, and bound their own memory."""

REQUEST_TYPES = (ScopeType.HTTP, ScopeType.WEBSOCKET)
"""Scope types of requests; the third type is the server's lifespan."""

FORWARDED = "forwarded"
"""Key in the scope's state of a request forwarded by a proxy, which is not a local request."""

REFUSAL, KEY_ID = "refusal", "key_id"
"""Keys in the scope's state: the error that refuses a request, and the id of its API key."""

QUOTA = "quota"
"""Key in the scope's state of the client's quota, if rates are limited."""

QUOTA_HEADERS = (b"RateLimit-Limit", b"RateLimit-Remaining", b"RateLimit-Reset")

_FORWARDING = frozenset(
    {
        *(b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"client-ip", b"true-client-ip"),
        *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port"),
        *(b"cf-connecting-ip", b"fastly-client-ip", b"x-cluster-client-ip", b"x-forwarded"),
    }
)


class Quota(NamedTuple):
    """A client's rate limit: requests per second, requests left, seconds until all are restored."""

    limit: int
    remaining: int
    reset_s: int


class Gate:
    """Middleware that finds the client of a request, notes why it is refused, and adds its quota.

    The error is raised inside the application, by `refuse`, so that it is rendered like any other.
    """

    def __init__(self, app: ASGIApp, rules: "AccessRules", *, trusted: list[str]) -> None:
        self._app, self._rules = app, rules
        self._forward: Any = ProxyHeadersMiddleware(cast("Any", self._take_forwarded), trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUEST_TYPES:
            await self._app(scope, receive, send)
            return
        for name, _ in scope["headers"]:
            if name in _FORWARDING:
                scope.setdefault("state", {})[FORWARDED] = scope.get("client")
                await self._forward(scope, receive, send)
                return
        await self._check(scope, receive, send)

    async def _take_forwarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection | None = scope["state"].get(CONNECTION)
        if connection is not None and scope.get("client") != scope["state"][FORWARDED]:
            connection.leave_share()
        await self._check(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_free(scope):
            state: dict[str, Any] = scope.setdefault("state", {})
            try:
                self._rules.check(scope)
            except ApiError as error:
                state[REFUSAL] = error
            if QUOTA in state:
                send = _add_quota(send, state[QUOTA])
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
    """Return a middleware that raises the error noted for a request, with ``Retry-After``."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        state: dict[str, Any] = scope.setdefault("state", {})
        error: ApiError | None = state.get(REFUSAL)
        if error is None:
            await app(scope, receive, send)
            return
        if isinstance(error, RateExceeded):
            state["headers"] = {"Retry-After": str(error.retry_after_s)}
        raise error

    return call


def read_networks(text: str) -> list[str]:
    """Return the networks of a comma-separated setting, or raise SettingsError."""
    networks = [part.strip() for part in text.split(",") if part.strip()]
    for network in networks if networks != ["*"] else ():
        try:
            ip_network(network)
        except ValueError as error:
            raise SettingsError(f"[access] trusted_proxies: {error}") from error
    return networks


MAX_CLIENTS = 65_536
"""Clients remembered, least recently seen dropped; a dropped one starts with a full bucket."""

BURST_S = 1
"""Capacity of a bucket in seconds of its rate: over a minute that allows 2 % more requests."""


class TokenBuckets:
    """One token bucket per client, refilled over time; for one thread."""

    def __init__(self, clock: Callable[[], float], most: int = MAX_CLIENTS) -> None:
        """Take a clock in seconds and the maximum number of clients to remember."""
        self._clock, self._most = clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens of each client, and when they were counted."""

    def take(self, client_id: str, rps: int) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        now_s = self._clock()
        most = float(rps * BURST_S)
        before, at_s = self._buckets.pop(client_id, (most, now_s))
        tokens = min(most, before + max(0.0, now_s - at_s) * rps)
        admitted = tokens >= 1.0
        self._buckets[client_id] = tokens - admitted, now_s
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if admitted else (1.0 - tokens) / rps

    def measure(self, client_id: str, rps: int) -> tuple[float, float]:
        """Return the tokens left after ``take``, and the seconds until the bucket is full."""
        most = float(rps * BURST_S)
        tokens, _ = self._buckets[client_id]
        return tokens, (most - tokens) / rps


HEADER, PARAMETER = b"x-api-key", "api_key"
KEY_REQUIRED = "API key is required: send it in the header X-API-Key"


class AccessRules:
    """Decides whether a request is admitted; used by the event loop's thread only."""

    def __init__(
        self, settings: AccessSettings, host: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the keys; ``host`` is the address that the service listens on.

        Raises KeyFileInvalid if the key file cannot be read, or ``keys_file`` is not set.
        """
        path = settings.keys_file
        if settings.keys_required and not path:
            raise KeyFileInvalid("keys_required needs a key file: set keys_file")
        self._keys = Keyring(Path(path), clock) if path else None
        limited = {"on": True, "off": False, "auto": not is_own_machine(host)}
        self._settings, self._limited = settings, limited[settings.rate_limits]
        self._buckets = TokenBuckets(clock)

    def check(self, scope: Scope) -> None:
        """Store key id and quota; raise RateExceeded or KeyRefused to refuse."""
        forwarded = self._settings.rate_limits == "auto" and FORWARDED in scope.get("state", ())
        limited = self._limited or forwarded
        if self._keys is None and not limited:
            return
        key = read_key(scope)
        client = scope.get("client")
        client_id, rps = name_address(client[0]) if client else "", self._settings.anonymous_rps
        record = self._keys.find(key) if key and self._keys is not None else None
        if record is not None:
            client_id, rps = f"key {record.id}", record.rps
            scope.setdefault("state", {})[KEY_ID] = record.id
        if limited:
            wait_s = self._buckets.take(client_id, rps)
            left, full_s = self._buckets.measure(client_id, rps)
            quota = Quota(rps, math.floor(left), math.ceil(full_s))
            scope.setdefault("state", {})[QUOTA] = quota
            if wait_s:
                raise RateExceeded(rps, math.ceil(wait_s))
        if record is not None:
            return
        if key and self._keys is not None:
            raise KeyRefused("API key does not exist")
        if self._settings.keys_required:
            raise KeyRefused(KEY_REQUIRED)


def check_key(scope: Scope, host: str) -> None:
    """Refuse a request without a key, unless the service listens only to this machine.

    ``host`` is the address that the service listens on; proxied requests always need a key. Raises
    KeyRefused if other machines have access, and there is no valid key.
    """
    state = scope["state"]
    if not (is_own_machine(host) and FORWARDED not in state) and KEY_ID not in state:
        raise KeyRefused(KEY_REQUIRED)


def read_key(scope: Scope) -> str:
    """Return the key in the header, else in the query string of a request; "" without one."""
    for name, value in scope["headers"]:
        if name == HEADER and value.strip():
            return value.strip().decode("latin-1")
    query = scope["query_string"]
    if PARAMETER.encode() not in query:
        return ""
    parameters = dict(parse_qsl(query.decode("latin-1")))
    return parameters.get(PARAMETER, "").strip()
