"""Accounts as runs name them: 36 bytes, which sort by account, then workchain."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Account = tuple[bytes, int]
"""Account id and workchain: the order of a run."""

ID_BYTES = 36

_WORKCHAIN = struct.Struct(">I")
_ID = struct.Struct(">32sI")
_SIGN = 1 << 31


def account_id(account: bytes, workchain: int) -> bytes:
    """Return 36 bytes that sort by account, then workchain."""
    return account + _WORKCHAIN.pack(workchain + _SIGN)


def split_account_id(identity: bytes) -> Account:
    """Return account and workchain."""
    return identity[:32], _WORKCHAIN.unpack(identity[32:])[0] - _SIGN


def read_accounts(ids: memoryview, numbers: Iterable[int]) -> Iterator[Account]:
    """Yield account and workchain of some of the ids that stand one after the other."""
    for number in numbers:
        account, biased = _ID.unpack_from(ids, number * ID_BYTES)
        yield account, biased - _SIGN
