"""Who may ask: keys first, then limits, by a token bucket for each asker."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from tonlake.api.access.key import Keyring
from tonlake.api.errors import KeyFileInvalid, KeyMissing, KeyUnknown, RateExceeded
from tonlake.api.http.gate import KEY_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import Scope

ASKERS_KEPT = 65_536
"""Askers remembered at once, those seen last; one that is forgotten begins with a full bucket."""

BURST_S = 1
"""A bucket holds the requests of this many seconds: over a minute that is 2 % too much."""

V6_PREFIX = 64
"""An address of version 6 stands for its network: one asker has as many as it likes."""


class _Bucket(NamedTuple):
    tokens: float
    at_s: float


class TokenBuckets:
    """A bucket for each asker, filled with time; used by one thread."""

    def __init__(self, clock: Callable[[], float], most: int = ASKERS_KEPT) -> None:
        """Take a clock in seconds, and how many askers are remembered."""
        self._clock, self._most = clock, most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, asker: str, rps: int) -> float:
        """Take one token; return 0, or the seconds until there is one and nothing was taken."""
        now_s = self._clock()
        most = float(rps * BURST_S)
        found = self._buckets.pop(asker, _Bucket(most, now_s))
        tokens = min(most, found.tokens + max(0.0, now_s - found.at_s) * rps)
        admitted = tokens >= 1.0
        self._buckets[asker] = _Bucket(tokens - admitted, now_s)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if admitted else (1.0 - tokens) / rps


@lru_cache(4096)
def name_address(host: str) -> str:
    """Return what addresses of one asker have in common."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), V6_PREFIX), strict=False))


def is_own_machine(host: str) -> bool:
    """Tell whether a service that listens to ``host`` is reached from its own machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


HEADER, PARAMETER = b"x-api-key", "api_key"
KEY_WANTED = "API key is required: send it in the header X-API-Key"


class AccessRules:
    """Decides whether a request is answered; used by the one thread that takes requests."""

    def __init__(
        self,
        *,
        keys_file: str,
        keys_required: bool,
        limited: bool,
        anonymous_rps: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys; ``anonymous_rps`` requests a second are free where rates are limited.

        Raises:
            KeyFileInvalid: the file of keys cannot be read, or is missing in the settings.
        """
        if keys_required and not keys_file:
            raise KeyFileInvalid("keys_required needs the setting keys_file: the file of keys")
        self._keys = Keyring(Path(keys_file), clock) if keys_file else None
        self._required, self._limited = keys_required, limited
        self._anonymous_rps = anonymous_rps
        self._buckets = TokenBuckets(clock)

    def check(self, scope: Scope) -> None:
        """Note the id of a request's key in its scope's state.

        Raises:
            RateExceeded, KeyUnknown, KeyMissing: the request is not to be answered.
        """
        if self._keys is None and not self._limited:
            return
        key = read_key(scope)
        client = scope.get("client")
        asker, rps = name_address(client[0]) if client else "", self._anonymous_rps
        record = self._keys.find(key) if key and self._keys is not None else None
        if record is not None:
            asker, rps = f"key {record.id}", record.rps
            scope.setdefault("state", {})[KEY_ID] = record.id
        if self._limited and (wait_s := self._buckets.take(asker, rps)):
            raise RateExceeded(rps, math.ceil(wait_s))
        if record is not None:
            return
        if key and self._keys is not None:
            raise KeyUnknown("API key does not exist")
        if self._required:
            raise KeyMissing(KEY_WANTED)


def limits_rates(chosen: str, host: str) -> bool:
    """Return whether rates are limited; ``auto`` limits them where others reach ``host``."""
    return {"on": True, "off": False, "auto": not is_own_machine(host)}[chosen]


def read_key(scope: Scope) -> str:
    """Return the key that a request came with, in its header or else its query; "" without."""
    for name, value in scope["headers"]:
        if name == HEADER and value.strip():
            return value.strip().decode("latin-1")
    query = scope["query_string"]
    if PARAMETER.encode() not in query:
        return ""
    parameters = dict(parse_qsl(query.decode("latin-1")))
    return parameters.get(PARAMETER, "").strip()
