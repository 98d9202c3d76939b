"""Vesting wallets: coins that their owner gets to use bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.contract.detection import Finding, Question, address_fields
from tonlake.ingest.derive.contract.stack import Address, Results
from tonlake.lake.schema.contract import VESTING_CONTRACTS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.detection import Detection
    from tonlake.ingest.derive.contract.stack import Cell

CODE_HASH = bytes.fromhex("b48b531abec3b714638291f7d77ed6dc9f6a2729efca20477137374d4ae8b590")
_KEY_BITS = 264  # workchain:int8 account:uint256


def detect_vesting(me: Address) -> Detection:
    """Ask get_vesting_data of a wallet with the one code that is known."""
    answer = Results((yield Question(me, "get_vesting_data")), 8)
    fields = {
        "start_time": answer.small(),
        "total_duration": answer.small(),
        "unlock_period": answer.small(),
        "cliff_duration": answer.small(),
        "total_amount": answer.amount(),
        **address_fields("sender", answer.address()),
        **address_fields("owner", answer.address()),
        "whitelist": _read_whitelist(answer.maybe_cell()),
    }
    return [Finding(VESTING_CONTRACTS.name, fields)]


def _read_whitelist(dictionary: Cell | None) -> list[str]:
    if dictionary is None:
        return []
    keys = (key for key, _ in iter_hashmap(dictionary.tree, dictionary.root, _KEY_BITS))
    parts = (key.to_bytes(_KEY_BITS // 8, "big") for key in keys)
    found = (Address(int.from_bytes(part[:1], "big", signed=True), part[1:]) for part in parts)
    return sorted(map(str, found))
