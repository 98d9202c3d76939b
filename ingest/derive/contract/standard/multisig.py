"""Multisig v2 wallets and their orders, and vesting wallets."""

from typing import Any

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.contract.stack import (
    Address,
    Cell,
    Detection,
    Finding,
    Mismatch,
    Question,
    Results,
    Trigger,
    address_fields,
    load_address,
)
from tonlake.lake.schema.contract import MULTISIG_ORDERS, MULTISIG_WALLETS, VESTING_CONTRACTS

_INDEX_BITS = 8


def detect_multisig(me: Address) -> Detection:
    """Ask get_multisig_data: next seqno, threshold, signers, proposers."""
    answer = Results((yield Question(me, "get_multisig_data")), 4)
    fields = answer.read("text next_order_seqno, small threshold, maybe_cell signers proposers")
    fields |= {name: _read_addresses(fields[name]) for name in ("signers", "proposers")}
    return [Finding(MULTISIG_WALLETS.name, fields)]


def detect_order(me: Address) -> Detection:
    """Ask get_order_data of an order, and get_order_address of its multisig wallet.

    An order that is not initialised has only its multisig address and seqno.
    """
    answer = Results((yield Question(me, "get_order_data")), 9)
    multisig, seqno = answer.required_address(), answer.integer()
    rest = [answer.take() for _ in range(7)]
    named = Results((yield Question(multisig, "get_order_address", (seqno,))), 1)
    if named.address() != me:
        raise Mismatch("the multisig wallet returns another order")
    fields = {
        **address_fields("multisig", multisig),
        "order_seqno": str(seqno),
        **(_NOT_INITIALISED if rest[0] is None else _read_order(Results(rest, 7))),
    }
    return [Finding(MULTISIG_ORDERS.name, fields)]


_ORDER = (
    "small threshold, boolean sent_for_execution, maybe_cell signers, text approvals_mask, "
    "small approvals_num expiration_date, maybe_cell order_boc"
)
_NOT_INITIALISED: dict[str, Any] = dict.fromkeys(
    (
        *("threshold", "sent_for_execution", "signers", "approvals_mask", "approvals_num"),
        *("expiration_date", "order_boc"),
    )
)


def _read_order(rest: Results) -> dict[str, Any]:
    found = rest.read(_ORDER)
    order = found["order_boc"]
    boc = None if order is None else order.boc()
    return {**found, "signers": _read_addresses(found["signers"]), "order_boc": boc}


def _read_addresses(dictionary: Cell | None) -> list[str]:
    """Read Hashmap 8 MsgAddress, in key order."""
    if dictionary is None:
        return []
    entries = iter_hashmap(dictionary.tree, dictionary.root, _INDEX_BITS)
    found = [load_address(value) for _key, value in entries]
    return [str(address) for address in found if address is not None]


VESTING_CODE = bytes.fromhex("b48b531abec3b714638291f7d77ed6dc9f6a2729efca20477137374d4ae8b590")
_KEY_BITS = 264  # workchain:int8 account:uint256


def detect_vesting(me: Address) -> Detection:
    """Ask get_vesting_data of a wallet with the one known code."""
    answer = Results((yield Question(me, "get_vesting_data")), 8)
    fields = answer.read(
        "small start_time total_duration unlock_period cliff_duration, amount total_amount, "
        "address sender owner, maybe_cell whitelist"
    )
    fields["whitelist"] = _read_whitelist(fields["whitelist"])
    return [Finding(VESTING_CONTRACTS.name, fields)]


def _read_whitelist(dictionary: Cell | None) -> list[str]:
    if dictionary is None:
        return []
    keys = (key for key, _ in iter_hashmap(dictionary.tree, dictionary.root, _KEY_BITS))
    parts = (key.to_bytes(_KEY_BITS // 8, "big") for key in keys)
    found = (Address(int.from_bytes(part[:1], "big", signed=True), part[1:]) for part in parts)
    return sorted(map(str, found))


TRIGGERS = (
    Trigger("get_multisig_data", MULTISIG_WALLETS, detect_multisig),
    Trigger("get_order_data", MULTISIG_ORDERS, detect_order),
    Trigger("get_vesting_data", VESTING_CONTRACTS, detect_vesting, frozenset({VESTING_CODE})),
)
