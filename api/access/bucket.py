"""Token buckets: how many requests a second, for each of many askers."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

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
