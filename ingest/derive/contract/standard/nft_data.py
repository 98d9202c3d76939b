"""Readers of the standard NFTs (TEP-62), of domains (TEP-81) and of sales.

Item: index:uint64 collection:MsgAddress, and once it is initialised owner:MsgAddress content:^Cell
(followed by editor:MsgAddress in editable ones, by authority:MsgAddress revoked_at:uint64 in
soulbound ones). Domain: index:uint256 collection:MsgAddress owner:MsgAddress content:^Cell
domain:^Cell auction:(Maybe ^Cell) last_fill_up_time:uint64. Collection: owner:MsgAddress
next_item_index:uint64 ^[collection_content:^Cell common_content:^Cell] item_code:^Cell
royalty:^Cell; that of domains content:^Cell item_code:^Cell. Sale: is_complete:Bool
created_at:uint32 marketplace nft owner (MsgAddress) price:Coins ^[fee_address fee:Coins
royalty_address royalty:Coins] sold_at:uint32 sold_query_id:uint64; version 3r2 has
can_deploy_by_external:Bool instead of the last two.

A reader reads every field that the code loads, even if the answer does not need it: the code fails
on data that are too short, and so must its reader.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder, graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.layout import (
    FALSE,
    TRUE,
    expect_arguments,
    hash_state_init,
    load_address_slice,
    make_cell,
    make_maybe_cell,
    store_address,
    take_integer,
)
from tonlake.ingest.derive.contract.stack import Address, Cell, Mismatch, make_slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.layout import Reader, Subject
    from tonlake.ingest.derive.contract.stack import Value

_INDEX_BITS, _NAME_BITS, _TIME_BITS = 64, 256, 64
_ON_CHAIN_BITS = 8
_OFF_CHAIN = 1
_ITSELF = (0, 8)
"""The name of one zero byte, as value and number of bits."""

_SALE_MAGIC = 0x46495850  # "FIXP"


def _answer_item(
    subject: Subject,
    *,
    index_bits: int = _INDEX_BITS,
    read_rest: Callable[[CellSlice], object] | None = None,
) -> list[Value]:
    """Answer get_nft_data; ``read_rest`` reads the fields after the content."""
    start = expect_arguments(subject, 0).data.slice()
    index, collection = start.load_uint(index_bits), load_address_slice(start)
    if not start.bits_left:
        return [FALSE, index, collection, None, None]
    owner, content = load_address_slice(start), make_cell(start)
    if read_rest is not None:
        read_rest(start)
    return [TRUE, index, collection, owner, content]


def _read_authority(rest: CellSlice) -> None:
    load_address_slice(rest)
    rest.skip(_TIME_BITS)  # revoked_at


def _read_domain(rest: CellSlice) -> Cell:
    """Return the name of an initialised domain; read its remaining fields."""
    domain = make_cell(rest)
    rest.load_maybe_ref()
    rest.skip(_TIME_BITS)
    return domain


def _answer_domain(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    start.skip(_NAME_BITS)
    for _ in range(2):
        load_address_slice(start)
    start.load_ref()
    return [_read_domain(start).slice()]


def _answer_records(subject: Subject) -> list[Value]:
    """Answer dnsresolve for the domain itself and all its records."""
    name, category = expect_arguments(subject, 2).arguments
    is_itself = isinstance(name, CellSlice) and name.bits() == _ITSELF
    if not is_itself or category != 0:
        raise Mismatch("a subdomain, or a single category of records")
    content = make_cell(subject.data.slice()).slice()
    content.skip(_ON_CHAIN_BITS)
    return [8, make_maybe_cell(content)]


def _answer_collection(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    owner, index = load_address_slice(start), start.load_uint(_INDEX_BITS)
    content = make_cell(start)
    for _ in range(2):
        start.load_ref()
    return [index, make_cell(content.slice()), owner]


def _answer_names(subject: Subject) -> list[Value]:
    """Answer get_collection_data of the collection of domains, which has no owner."""
    start = expect_arguments(subject, 0).data.slice()
    content = make_cell(start)
    start.load_ref()
    return [-1, content, make_slice(0, 2)]  # addr_none


def _compute_address(subject: Subject, *, index_bits: int) -> list[Value]:
    """Compute the address of the item with an index, in the basechain."""
    index = take_integer(expect_arguments(subject, 1).arguments[0])
    start = subject.data.slice()
    start.load_ref()
    code = Cell(start.tree, start.load_ref())
    data = CellBuilder(start.tree).store_uint(index, index_bits)
    return [Address(0, hash_state_init(code, store_address(data, subject.address))).slice()]


def _answer_content(subject: Subject) -> list[Value]:
    """Append the item's own content, as a reference, to the common content."""
    _index, own = expect_arguments(subject, 2).arguments
    contents = make_cell(subject.data.slice()).slice()
    contents.load_ref()
    common = make_cell(contents).slice()
    if not isinstance(own, Cell):
        raise Mismatch("argument is not a cell")
    root = own.root if own.tree is common.tree else graft_cell(common.tree, own.tree, own.root)
    builder = CellBuilder(common.tree).store_uint(_OFF_CHAIN, 8).store_slice(common)
    return [Cell(common.tree, builder.store_ref(root).end())]


def _answer_domain_content(subject: Subject) -> list[Value]:
    return [expect_arguments(subject, 2).arguments[1]]


def _answer_sale(subject: Subject, *, rest_bits: int) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    stack: list[Value] = [_SALE_MAGIC, TRUE if start.load_bit() else FALSE, start.load_uint(32)]
    stack += [load_address_slice(start) for _ in range(3)]
    stack.append(start.load_coins())
    fees = make_cell(start).slice()
    start.skip(rest_bits)
    for _ in range(2):
        stack += [load_address_slice(fees), fees.load_coins()]
    return stack


def _list_readers() -> dict[tuple[str, str], Reader]:
    found: dict[tuple[str, str], Reader] = {}
    for code, read_rest in (
        ("4c9123828682fa6f43797ab41732bca890cae01766e0674100250516e0bf8d42", None),
        ("9892766765d3ea42809a417abbd7ff9ce681b145d05ae6b118a614b38c8ded15", load_address_slice),
        ("2ffbf52beaf816157bfc9726dc2548327fa87ebfd2696eed27a9c2cda25c9edc", _read_authority),
    ):
        found[code, "get_nft_data"] = partial(_answer_item, read_rest=read_rest)
    for code in (
        "8e5aab17e2e503bec75c2f453b9dacf11a98bbb2cc202994710952a7271c7780",
        "64bb2d4661b5f2dc1a83bf5cbbe09e92ac0b460a1b879a5519386fca4c348bca",
    ):
        found[code, "get_collection_data"] = _answer_collection
        found[code, "get_nft_address_by_index"] = partial(_compute_address, index_bits=_INDEX_BITS)
        found[code, "get_nft_content"] = _answer_content
    names = "eec5bbc25065628799468860d8fd48031585f649c32fa382c888ba48831625a3"
    found[names, "get_collection_data"] = _answer_names
    found[names, "get_nft_address_by_index"] = partial(_compute_address, index_bits=_NAME_BITS)
    found[names, "get_nft_content"] = _answer_domain_content
    domain = "8b5ffc9ebfd39064d8d5f56e4659c826bb7593923f5ca48728be4d60af6f51f9"
    found[domain, "get_nft_data"] = partial(
        _answer_item, index_bits=_NAME_BITS, read_rest=_read_domain
    )
    found[domain, "get_domain"] = _answer_domain
    found[domain, "dnsresolve"] = _answer_records
    for code, rest_bits in (
        ("24221fa571e542e055c77bedfdbf527c7af460cfdc7f344c450787b4cfa1eb4d", 96),
        ("deb53b6c5765c1e6cd238bf47bc5e83ba596bdcc04b0b84cd50ab1e474a08f31", 1),
    ):
        found[code, "get_sale_data"] = partial(_answer_sale, rest_bits=rest_bits)
    return found


READERS = _list_readers()
"""By code hash in hex, and method."""
