"""What is asked of the TVM, and what it answers."""

from __future__ import annotations

import binascii

import msgspec

from tonlake.ingest.derive.tvm.stack import StackValue

NO_CODE = -13
"""Exit code where there is no code to run: the bitwise not of 12 (fatal error)."""

CELL_UNDERFLOW = 9
"""Exit code of a read past the end of a cell, and of a library that is not there."""

_METHOD_MARK = 0x10000


class GetMethodCall(msgspec.Struct, frozen=True):
    """One run: cells are bags; ``stack`` has the deepest value first, and the method id last."""

    code: bytes
    data: bytes | None
    stack: tuple[StackValue, ...]
    c7: tuple[StackValue, ...]
    """SmartContractInfo, the tuple that c7 has at 0."""
    libraries: bytes | None = None
    """Hashmap 256 ^Cell: the libraries that library cells are replaced by."""
    gas_limit: int | None = None
    """Gas; None takes the limit of the settings."""


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended; ``stack`` has the deepest value first."""

    exit_code: int
    gas_used: int
    stack: tuple[StackValue, ...]


def method_id(name: str) -> int:
    """Return the id that compilers give a get-method: CRC-16/XMODEM of its name, and bit 16."""
    return binascii.crc_hqx(name.encode(), 0) | _METHOD_MARK
