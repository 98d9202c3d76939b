"""Negotiates content codings (RFC 9110, 12.5.3) and compresses bodies."""

import gzip
import re
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
PREFERRED = (ZSTD, GZIP)
"""Order among codings of equal weight: for 3 MB zstd takes a tenth of the time of gzip."""

GZIP_LEVEL = 5

_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_ALIASES = {"x-gzip": GZIP}


class Choice(NamedTuple):
    """The coding to send, and whether the client refuses an uncompressed body."""

    coding: str | None
    refuses_identity: bool = False


@lru_cache(maxsize=1024)
def choose_coding(accepted: bytes) -> Choice:
    """Return the coding to send for an Accept-Encoding header.

    A coding that is not listed has the weight of ``*``; an invalid weight counts as 0. ``identity``
    has the lowest preference unless it is listed.
    """
    weights: dict[str, float] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        if name:
            name = _ALIASES.get(name, name)
            weights[name] = max(_read_weight(options), weights.get(name, 0.0))
    others = weights.get("*", 0.0)
    best = max(PREFERRED, key=lambda coding: weights.get(coding, others))
    refuses = weights.get(IDENTITY, weights.get("*", 1.0)) == 0
    weight = weights.get(best, others)
    is_accepted = weight > 0 and weight >= weights.get(IDENTITY, 0.0)
    return Choice(best if is_accepted else None, is_accepted and refuses)


def _read_weight(options: list[str]) -> float:
    text = next((each[2:].strip() for each in options if each.startswith("q=")), "1")
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


def pack(coding: str, body: bytes) -> bytes:
    """Compress a body."""
    if coding == ZSTD:
        packed: bytes = pa.compress(body, ZSTD, asbytes=True)
        return packed
    return gzip.compress(body, GZIP_LEVEL, mtime=0)
