"""Token buckets: how many requests a second, for each of many askers."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

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
