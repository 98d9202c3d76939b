"""Which clients may send requests: keys first, then requests a second, by token buckets."""

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

ASKERS_KEPT = 65_536
"""Askers remembered at once, those seen last; one that is forgotten begins with a full bucket."""

BURST_S = 1
"""A bucket holds the requests of this many seconds: over a minute that is 2 % too much."""


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

    def measure(self, asker: str, rps: int) -> tuple[float, float]:
        """Return the tokens that are left after ``take``, and seconds until the bucket is full."""
        most = float(rps * BURST_S)
        tokens = self._buckets[asker].tokens
        return tokens, (most - tokens) / rps


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
        forwarded_limited: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys; ``anonymous_rps`` requests a second are free where rates are limited.

        With ``forwarded_limited`` rates of requests that a proxy passed on are, in any case.

        Raises:
            KeyFileInvalid: the file of keys cannot be read, or is missing in the settings.
        """
        if keys_required and not keys_file:
            raise KeyFileInvalid("keys_required needs the setting keys_file: the file of keys")
        self._keys = Keyring(Path(keys_file), clock) if keys_file else None
        self._required, self._limited = keys_required, limited
        self._anonymous_rps, self._forwarded_limited = anonymous_rps, forwarded_limited
        self._buckets = TokenBuckets(clock)

    def check(self, scope: Scope) -> None:
        """Note the id of a request's key, and the quota of its client, in its scope's state.

        Raises:
            RateExceeded, KeyUnknown, KeyMissing: the request is not to be answered.
        """
        forwarded = self._forwarded_limited and FORWARDED in scope.get("state", ())
        limited = self._limited or forwarded
        if self._keys is None and not limited:
            return
        key = read_key(scope)
        client = scope.get("client")
        asker, rps = name_address(client[0]) if client else "", self._anonymous_rps
        record = self._keys.find(key) if key and self._keys is not None else None
        if record is not None:
            asker, rps = f"key {record.id}", record.rps
            scope.setdefault("state", {})[KEY_ID] = record.id
        if limited:
            wait_s = self._buckets.take(asker, rps)
            left, full_s = self._buckets.measure(asker, rps)
            quota = Quota(rps, math.floor(left), math.ceil(full_s))
            scope.setdefault("state", {})[QUOTA] = quota
            if wait_s:
                raise RateExceeded(rps, math.ceil(wait_s))
        if record is not None:
            return
        if key and self._keys is not None:
            raise KeyUnknown("API key does not exist")
        if self._required:
            raise KeyMissing(KEY_WANTED)


def check_key(scope: Scope, host: str) -> None:
    """Refuse a request without a key, unless it comes from this machine, which alone can ask.

    ``host`` is the address that the service listens on.

    Raises:
        KeyMissing: others may ask as well, and there is no key.
    """
    state = scope["state"]
    if not (is_own_machine(host) and FORWARDED not in state) and KEY_ID not in state:
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
