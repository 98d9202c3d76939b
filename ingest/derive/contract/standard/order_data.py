"""Data cells of multisig v2 wallets, of their orders, and of vesting wallets, as get-methods.

Multisig: next_order_seqno:uint256 threshold:uint8 signers:^(Hashmap 8 MsgAddress) signers_num:uint8
proposers:(HashmapE 8 MsgAddress) allow_arbitrary_seqno:Bool. Order: multisig:MsgAddress
seqno:uint256, and once it is initialised threshold:uint8 sent_for_execution:Bool signers:^Cell
approvals_mask:uint256 approvals_num:uint8 expiration_date:uint48 order:^Cell. Vesting:
seqno:uint32 wallet_id:uint32 public_key:bits256 whitelist:(HashmapE 264 Unit)
^[start_time:uint64 total_duration:uint32 unlock_period:uint32 cliff_duration:uint32
total_amount:Coins sender:MsgAddress owner:MsgAddress].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.exotic import LIBRARY
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
from tonlake.ingest.derive.contract.stack import Address, Cell, Mismatch

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.layout import Reader, Subject
    from tonlake.ingest.derive.contract.stack import Value

_SEQNO_BITS, _INDEX_BITS, _MASK_BITS, _TIME_BITS = 256, 8, 256, 48
_ORDER_CODE = bytes.fromhex("6305a8061c856c2ccf05dcb0df5815c71475870567cab5f049e340bcf59251f3")
"""Library in which orders have their code."""


def _answer_multisig(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    seqno, threshold = start.load_uint(_SEQNO_BITS), start.load_uint(_INDEX_BITS)
    signers, count = make_cell(start), start.load_uint(_INDEX_BITS)
    proposers, is_arbitrary = make_maybe_cell(start), start.load_bit()
    expect_end(start)
    keys = [key for key, _address in iter_hashmap(signers.tree, signers.root, _INDEX_BITS)]
    if keys != list(range(count)) or not 0 < threshold <= count:
        raise Mismatch("signers that do not fit their number, or too few for the threshold")
    return [-1 if is_arbitrary else seqno, threshold, signers, proposers]


def _answer_order_address(subject: Subject) -> list[Value]:
    """Compute the address of an order; it lies in the basechain."""
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


def _list_readers() -> dict[tuple[str, str], Reader]:
    multisig = "d3d14da9a627f0ec3533341829762af92b9540b21bf03665fac09c2b46eabbac"
    order = "a01e057fbd4288402b9898d78d67bd4e90254c93c5866879bc2d1d12865436bc"
    vesting = "b48b531abec3b714638291f7d77ed6dc9f6a2729efca20477137374d4ae8b590"
    return {
        (multisig, "get_multisig_data"): _answer_multisig,
        (multisig, "get_order_address"): _answer_order_address,
        (order, "get_order_data"): _answer_order,
        (vesting, "get_vesting_data"): _answer_vesting,
    }


READERS = _list_readers()
"""By code hash in hex (that of a library cell where the code is one), and method."""
