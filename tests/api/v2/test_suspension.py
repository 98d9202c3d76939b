"""Suspended accounts, by a synthetic configuration."""

from collections.abc import Callable
from typing import Any

import pytest
from pytoniq_core import Builder, HashMap

from tonlake.api.text.encoding import Address
from tonlake.api.v2.account import is_suspended

UNTIL = 1803189600
SUSPENDED = [Address(0, b"\x11" * 32), Address(-1, b"\x22" * 32), Address(0, bytes(32))]
MASTER = {"seqno": 30, "key_block": False, "prev_key_block_seqno": 20}


class Asked:
    """Stands for a call: the one row that is asked for, and what was asked."""

    def __init__(self, boc: bytes | None, last_mc_seqno: int) -> None:
        """Take the cell of parameter 44, or None, and the newest block."""
        self.reader = self.snapshot = self
        self.boc, self.last_mc_seqno = boc, last_mc_seqno
        self.asked: list[dict[str, Any]] = []
        self.kept = 0

    def rows(self, name: str, **params: object) -> list[dict[str, Any]]:
        """Answer the query for a parameter."""
        assert name == "v2/config_params"
        self.asked.append(params)
        return [] if self.boc is None else [{"param": 44, "boc": self.boc}]

    def lasting_rows(self, name: str, **params: object) -> list[dict[str, Any]]:
        """Answer it for all who ask about the newest block."""
        self.kept += 1
        return self.rows(name, **params)


def _param(addresses: list[Address]) -> bytes:
    entries = HashMap(288, value_serializer=lambda _value, into: into)
    for address in addresses:
        key = (address.workchain & 0xFFFFFFFF) << 256 | int.from_bytes(address.account, "big")
        entries.set_int_key(key, 1)
    cell = Builder().store_uint(0, 8)
    root = entries.serialize()
    cell = cell.store_bit(0) if root is None else cell.store_bit(1).store_ref(root)
    data: bytes = cell.store_uint(UNTIL, 32).end_cell().to_boc()
    return data


@pytest.fixture(params=[MASTER["seqno"], 31], ids=["newest", "past"])
def suspended(request: pytest.FixtureRequest) -> Callable[..., bool]:
    """Ask whether an account is suspended; what holds in the newest block may be kept."""

    def ask(address: Address, utime: int, boc: bytes | None) -> bool:
        call = Asked(boc, request.param)
        found = is_suspended(call, MASTER, address, utime)  # type: ignore[arg-type]
        assert call.asked == [{"mc_seqno": 20, "param": 44}]
        assert call.kept == (request.param == MASTER["seqno"])
        return found

    return ask


def test_listed_accounts_are_suspended_until_the_date(suspended: Callable[..., bool]) -> None:
    boc = _param(SUSPENDED)
    for address in SUSPENDED:
        assert suspended(address, UNTIL - 1, boc)
        assert not suspended(address, UNTIL, boc)
        assert not suspended(Address(address.workchain, b"\x33" * 32), 1, boc)
        assert not suspended(Address(5, address.account), 1, boc)


def test_without_a_list_none_is(suspended: Callable[..., bool]) -> None:
    assert not suspended(SUSPENDED[0], 1, None)
    assert not suspended(SUSPENDED[0], 1, _param([]))
