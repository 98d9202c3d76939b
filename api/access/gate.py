"""Access control of requests: API keys first, then rate limits by token buckets."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from tonlake.api.access.key import Keyring
from tonlake.api.errors import KeyFileInvalid, KeyMissing, KeyUnknown, RateExceeded
from tonlake.api.http.address import is_own_machine, name_address
from tonlake.api.http.gate import FORWARDED, KEY_ID, QUOTA, Quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import Scope

MAX_CLIENTS = 65_536
"""Clients remembered, least recently seen dropped; a dropped one starts with a full bucket."""

BURST_S = 1
"""Capacity of a bucket in seconds of its rate: over a minute that allows 2 % more requests."""


class _Bucket(NamedTuple):
    tokens: float
    at_s: float


class TokenBuckets:
    """One token bucket per client, refilled over time; for one thread."""

    def __init__(self, clock: Callable[[], float], most: int = MAX_CLIENTS) -> None:
        """Take a clock in seconds and the maximum number of clients to remember."""
        self._clock, self._most = clock, most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, client_id: str, rps: int) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        now_s = self._clock()
        most = float(rps * BURST_S)
        found = self._buckets.pop(client_id, _Bucket(most, now_s))
        tokens = min(most, found.tokens + max(0.0, now_s - found.at_s) * rps)
        admitted = tokens >= 1.0
        self._buckets[client_id] = _Bucket(tokens - admitted, now_s)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if admitted else (1.0 - tokens) / rps

    def measure(self, client_id: str, rps: int) -> tuple[float, float]:
        """Return the tokens left after ``take``, and the seconds until the bucket is full."""
        most = float(rps * BURST_S)
        tokens = self._buckets[client_id].tokens
        return tokens, (most - tokens) / rps


HEADER, PARAMETER = b"x-api-key", "api_key"
KEY_REQUIRED = "API key is required: send it in the header X-API-Key"


class AccessRules:
    """Decides whether a request is admitted; used by the event loop's thread only."""

    def __init__(
        self,
        *,
        keys_file: str,
        keys_required: bool,
        limited: bool,
        anonymous_rps: int,
        forwarded_limited: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys; with ``limited``, keyless clients may send ``anonymous_rps`` per second.

        With ``forwarded_limited``, requests forwarded by a proxy are limited in any case.

        Raises:
            KeyFileInvalid: the key file cannot be read, or ``keys_file`` is not set.
        """
        if keys_required and not keys_file:
            raise KeyFileInvalid("keys_required needs a key file: set keys_file")
        self._keys = Keyring(Path(keys_file), clock) if keys_file else None
        self._required, self._limited = keys_required, limited
        self._anonymous_rps, self._forwarded_limited = anonymous_rps, forwarded_limited
        self._buckets = TokenBuckets(clock)

    def check(self, scope: Scope) -> None:
        """Store key id and quota of a request in the state of its scope.

        Raises:
            RateExceeded, KeyUnknown, KeyMissing: the request is refused.
        """
        forwarded = self._forwarded_limited and FORWARDED in scope.get("state", ())
        limited = self._limited or forwarded
        if self._keys is None and not limited:
            return
        key = read_key(scope)
        client = scope.get("client")
        client_id, rps = name_address(client[0]) if client else "", self._anonymous_rps
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
            raise KeyUnknown("API key does not exist")
        if self._required:
            raise KeyMissing(KEY_REQUIRED)


def check_key(scope: Scope, host: str) -> None:
    """Refuse a request without a key, unless the service listens only to this machine.

    ``host`` is the address that the service listens on; proxied requests always need a key.

    Raises:
        KeyMissing: other machines have access, and there is no valid key.
    """
    state = scope["state"]
    if not (is_own_machine(host) and FORWARDED not in state) and KEY_ID not in state:
        raise KeyMissing(KEY_REQUIRED)


def limits_rates(chosen: str, host: str) -> bool:
    """Return whether rates are limited; ``auto`` limits them if other machines reach ``host``."""
    return {"on": True, "off": False, "auto": not is_own_machine(host)}[chosen]


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
