"""Multisig v2 wallets and their orders, and vesting wallets, with their data cells.

Multisig: next_order_seqno:uint256 threshold:uint8 signers:^(Hashmap 8 MsgAddress) signers_num:uint8
proposers:(HashmapE 8 MsgAddress) allow_arbitrary_seqno:Bool. Order: multisig:MsgAddress
seqno:uint256, and once it is initialised threshold:uint8 sent_for_execution:Bool signers:^Cell
approvals_mask:uint256 approvals_num:uint8 expiration_date:uint48 order:^Cell. Vesting:
seqno:uint32 wallet_id:uint32 public_key:bits256 whitelist:(HashmapE 264 Unit) ^[start_time:uint64
total_duration:uint32 unlock_period:uint32 cliff_duration:uint32 total_amount:Coins
sender:MsgAddress owner:MsgAddress].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import LIBRARY
from tonlake.ingest.derive.contract.layout import (
    FALSE,
    TRUE,
    expect_arguments,
    expect_end,
    hash_state_init,
    load_address_slice,
    make_cell,
    make_maybe_cell,
    store_address,
    take_integer,
)
from tonlake.ingest.derive.contract.stack import (
    Address,
    Cell,
    Finding,
    Mismatch,
    Question,
    Results,
    address_fields,
    load_address,
)
from tonlake.lake.schema.contract import MULTISIG_ORDERS, MULTISIG_WALLETS, VESTING_CONTRACTS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.layout import Reader, Subject
    from tonlake.ingest.derive.contract.stack import Detection, Value

_INDEX_BITS = 8


def detect_multisig(me: Address) -> Detection:
    """Ask get_multisig_data: next seqno, threshold, signers, proposers."""
    answer = Results((yield Question(me, "get_multisig_data")), 4)
    seqno, threshold = answer.integer(), answer.small()
    fields = {
        "next_order_seqno": str(seqno),
        "threshold": threshold,
        "signers": _read_addresses(answer.maybe_cell()),
        "proposers": _read_addresses(answer.maybe_cell()),
    }
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


_NOT_INITIALISED: dict[str, Any] = dict.fromkeys(
    (
        *("threshold", "sent_for_execution", "signers", "approvals_mask", "approvals_num"),
        *("expiration_date", "order_boc"),
    )
)


def _read_order(rest: Results) -> dict[str, Any]:
    found: dict[str, Any] = {"threshold": rest.small(), "sent_for_execution": rest.boolean()}
    found["signers"] = _read_addresses(rest.maybe_cell())
    found["approvals_mask"] = str(rest.integer())
    found |= {"approvals_num": rest.small(), "expiration_date": rest.small()}
    order = rest.maybe_cell()
    found["order_boc"] = None if order is None else order.boc()
    return found


def _read_addresses(dictionary: Cell | None) -> list[str]:
    """Read Hashmap 8 MsgAddress, in key order."""
    if dictionary is None:
        return []
    entries = iter_hashmap(dictionary.tree, dictionary.root, _INDEX_BITS)
    found = [load_address(value) for _key, value in entries]
    return [str(address) for address in found if address is not None]


_SEQNO_BITS, _INDEX_BITS, _MASK_BITS, _TIME_BITS = 256, 8, 256, 48
_ORDER_CODE = bytes.fromhex("6305a8061c856c2ccf05dcb0df5815c71475870567cab5f049e340bcf59251f3")
"""Library with the code of orders."""


def _answer_multisig(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    seqno, threshold = start.load_uint(_SEQNO_BITS), start.load_uint(_INDEX_BITS)
    signers, count = make_cell(start), start.load_uint(_INDEX_BITS)
    proposers, is_arbitrary = make_maybe_cell(start), start.load_bit()
    expect_end(start)
    keys = [key for key, _address in iter_hashmap(signers.tree, signers.root, _INDEX_BITS)]
    if keys != list(range(count)) or not 0 < threshold <= count:
        raise Mismatch("signers do not match their number, or are too few for the threshold")
    return [-1 if is_arbitrary else seqno, threshold, signers, proposers]


def _answer_order_address(subject: Subject) -> list[Value]:
    """Compute the address of an order, in the basechain."""
    seqno = take_integer(expect_arguments(subject, 1).arguments[0])
    tree = subject.data.tree
    library = CellBuilder(tree).store_uint(LIBRARY, 8).store_bytes(_ORDER_CODE).end(exotic=True)
    data = store_address(CellBuilder(tree), subject.address).store_uint(seqno, _SEQNO_BITS)
    return [Address(0, hash_state_init(Cell(tree, library), data)).slice()]


def _answer_order(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    stack: list[Value] = [load_address_slice(start), start.load_uint(_SEQNO_BITS)]
    if not start.bits_left:
        return [*stack, *[None] * 7]
    stack += [start.load_uint(_INDEX_BITS), TRUE if start.load_bit() else FALSE, make_cell(start)]
    stack += [start.load_uint(bits) for bits in (_MASK_BITS, _INDEX_BITS, _TIME_BITS)]
    order = make_cell(start)
    expect_end(start)
    return [*stack, order]


def _answer_vesting(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    start.skip(32 + 32 + 256)
    whitelist = make_maybe_cell(start)
    terms = make_cell(start).slice()
    expect_end(start)
    stack: list[Value] = [terms.load_uint(bits) for bits in (64, 32, 32, 32)]
    stack += [terms.load_coins(), load_address_slice(terms), load_address_slice(terms)]
    return [*stack, whitelist]


_MULTISIG = "d3d14da9a627f0ec3533341829762af92b9540b21bf03665fac09c2b46eabbac"
_ORDER = "a01e057fbd4288402b9898d78d67bd4e90254c93c5866879bc2d1d12865436bc"
VESTING_CODE = bytes.fromhex("b48b531abec3b714638291f7d77ed6dc9f6a2729efca20477137374d4ae8b590")
READERS: dict[tuple[str, str], Reader] = {
    (_MULTISIG, "get_multisig_data"): _answer_multisig,
    (_MULTISIG, "get_order_address"): _answer_order_address,
    (_ORDER, "get_order_data"): _answer_order,
    (VESTING_CODE.hex(), "get_vesting_data"): _answer_vesting,
}
"""By code hash in hex (of the library cell if the code is one) and method."""


_KEY_BITS = 264  # workchain:int8 account:uint256


def detect_vesting(me: Address) -> Detection:
    """Ask get_vesting_data of a wallet with the one known code."""
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
