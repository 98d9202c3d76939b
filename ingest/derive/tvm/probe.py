"""Finds out which global version a libemulator supports: it does not tell, so it is tried."""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.call import GetMethodCall
from tonlake.ingest.derive.tvm.context import make_context
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import TvmError

if TYPE_CHECKING:
    from tonlake.ingest.settings import TvmSettings

_PROBES = {
    4: ("f807", 0),  # GASCONSUMED
    6: ("c8c9d766", 0),  # NEWC ENDC CLEVEL
    9: ("7070f913", 0),  # ZERO ZERO SECP256K1_XONLY_PUBKEY_TWEAK_ADD
    10: ("70f880", 0),  # GETEXTRABALANCE
    11: ("f890", 0),  # INMSG_BOUNCE
    12: ("c8cf50", 0),  # NEWC BTOS
    13: ("83ff70b0", 4),  # PUSHNAN ZERO AND: an integer overflow
    14: ("83ffaa6e", 4),  # PUSHNAN 111 LSHIFT: likewise
}
"""By global version: code, and the exit code that it has since then and not before."""

_NEWEST = 15
"""It has no instruction of its own: an engine that passes all probes is taken to support it."""

_START_MS = 60_000
"""Milliseconds for a large library to load from a slow disk."""


def find_library_version(settings: TvmSettings) -> int | None:
    """Return the highest global version whose probes succeed, 0 for one before 4.

    None if the library cannot be loaded. It is tried once, in a process of its own.
    """
    return _find_version(msgspec.structs.replace(settings, workers=1, wall_ms=_START_MS))


@lru_cache(8)
def _find_version(settings: TvmSettings) -> int | None:
    pool = TvmPool(settings)
    try:
        passed = [
            pool.run_get_method(_make_call(code)).exit_code == exit_code
            for code, exit_code in _PROBES.values()
        ]
    except TvmError:
        return None
    finally:
        pool.close()
    count = len(list(takewhile(bool, passed)))
    return _NEWEST if count == len(passed) else [0, *_PROBES][count]


def _make_call(code: str) -> GetMethodCall:
    """Return a get-method with the code in hex, on a network of the newest version."""
    boc = serialize_single(bytes((0, len(code))) + bytes.fromhex(code))
    context = make_context(0, bytes(32), _NEWEST)
    return GetMethodCall(code=boc, data=None, stack=(0,), context=context, gas_limit=100_000)
