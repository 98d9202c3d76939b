"""What is asked of contracts of a known standard, and how their answers are read.

Jettons (TEP-74, TEP-89), NFTs (TEP-62), their content (TEP-64), domains (TEP-81); multisig v2
wallets, their orders, vesting wallets; sales of NFTs (Getgems, Telemint), pools of DeDust.
"""

import base64
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from typing import Any, TypeVar

from tonlake.ingest.decode.cell.dictionary import iter_hashmap, list_keys
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import read_words
from tonlake.ingest.derive.contract.stack import (
    AddrStd,
    Cell,
    Detection,
    Finding,
    GetMethod,
    Mismatch,
    Results,
    Trigger,
    Value,
    address_fields,
    load_address,
    make_slice,
    raw_text,
)
from tonlake.ingest.errors import BocError
from tonlake.lake.schema import (
    DEX_POOLS,
    DNS_RECORDS,
    JETTON_MASTERS,
    JETTON_WALLETS,
    MULTISIG_ORDERS,
    MULTISIG_WALLETS,
    NFT_COLLECTIONS,
    NFT_ITEMS,
    NFT_SALES,
    VESTING_CONTRACTS,
)

Content = dict[str, str]
"""Key to text; ``image_data`` is base64."""

ON_CHAIN, OFF_CHAIN = 0, 1
SNAKE, CHUNKED = 0, 1
KEYS = (
    *("uri", "name", "description", "image", "image_data"),
    *("symbol", "decimals", "amount_style", "render_type"),
)
_NAMES = {int.from_bytes(sha256(name.encode()).digest(), "big"): name for name in KEYS}
_BINARY = "image_data"
_KEY_BITS, _CHUNK_BITS = 256, 32
MAX_CELLS = 8192
"""Maximum number of cells of one value, with all of its chunks: a message cannot bring more into a
contract's data (ConfigParam 43: max_msg_cells), and shared cells could expand without limit."""


def read_content(tree: CellTree, cell: int) -> Content | None:
    """Read the content cell of a token; None if it is neither on-chain nor off-chain content.

    On-chain content yields the ``KEYS`` that are present; semi-chain content has ``uri`` among
    them. Values that are not UTF-8, or follow no layout, are left out.
    """
    try:
        start = tree.slice(cell)
        kind = start.load_uint(8)
        if kind == OFF_CHAIN:
            return {"uri": _read_text(read_words(start))}
        return _read_dictionary(start) if kind == ON_CHAIN else None
    except (BocError, UnicodeDecodeError):
        return None


def _read_dictionary(start: CellSlice) -> Content:
    content: Content = {}
    root = start.load_maybe_ref()
    for key, value in () if root is None else iter_hashmap(start.tree, root, _KEY_BITS):
        if (name := _NAMES.get(key)) is not None:
            with suppress(BocError, UnicodeDecodeError):
                data = _read_value(value)
                is_binary = name == _BINARY
                content[name] = base64.b64encode(data).decode() if is_binary else _read_text(data)
    return {name: content[name] for name in KEYS if name in content}


def _read_text(data: bytes) -> str:
    # TON Center stores text in PostgreSQL, which does not allow NUL.
    return data.decode("utf-8").replace("\0", "")


def _read_value(value: CellSlice) -> bytes:
    """Read ContentData: snake or chunked; in a child cell or, against TEP-64, in the leaf."""
    if not value.bits_left and value.refs_left:
        value = value.tree.slice(value.load_ref())
    kind = value.load_uint(8)
    if kind == SNAKE:
        return read_words(value)
    if kind == CHUNKED:
        return _load_chunks(value)
    raise BocError(f"content of kind {kind} is neither snake nor chunked")


def _iter_snake(start: CellSlice) -> Iterator[bytes]:
    yield start.load_bytes(start.bits_left // 8)
    while start.refs_left:
        start = start.tree.slice(start.load_ref())
        yield start.load_bytes(start.bits_left // 8)


def _load_chunks(start: CellSlice) -> bytes:
    """Read ``chunked_data#01 data:(HashMapE 32 ^(SnakeData ~0))``, in key order."""
    root = start.load_maybe_ref()
    if root is None:
        return b""
    chunks = iter_hashmap(start.tree, root, _CHUNK_BITS)
    texts = (_iter_snake(start.tree.slice(chunk.load_ref())) for _key, chunk in chunks)
    cells = chain.from_iterable(texts)
    found = b"".join(islice(cells, MAX_CELLS))
    if next(cells, None) is not None:
        raise BocError(f"text has more than {MAX_CELLS} cells")
    return found


def detect_master(me: AddrStd) -> Detection:
    """Ask get_jetton_data: total supply, mintable flag, administrator, content, wallet code."""
    answer = Results((yield GetMethod(me, "get_jetton_data")), 5)
    fields = answer.read("amount total_supply, boolean mintable, address admin, cell content")
    fields["content"] = _read_cell(fields["content"])
    fields["wallet_code_hash"] = answer.cell().hash
    return [Finding(JETTON_MASTERS.name, fields)]


def detect_wallet(me: AddrStd) -> Detection:
    """Ask get_wallet_data of a wallet, and get_wallet_address of its master.

    For wallets of mintless jettons, is_claimed shows whether the airdrop was claimed.
    """
    answer = Results((yield GetMethod(me, "get_wallet_data")), 4)
    balance, owner, jetton = answer.amount(), answer.required_address(), answer.required_address()
    answer.cell()
    named = Results((yield GetMethod(jetton, "get_wallet_address", (owner.slice(),))), 1)
    if named.address() != me:
        raise Mismatch("the master returns another wallet")
    is_claimed = yield from _ask(me, "is_claimed", lambda stack: Results(stack, 1).boolean())
    fields = {
        "balance": balance,
        **address_fields("owner", owner),
        **address_fields("jetton", jetton),
        "is_claimed": is_claimed,
    }
    return [Finding(JETTON_WALLETS.name, fields)]


_ALL_CATEGORIES = 0
T = TypeVar("T")


def _ask(
    address: AddrStd, method: str, read: Callable[[list[Any]], T], *arguments: Value
) -> Generator[GetMethod, Any, T | None]:
    """Ask what a contract need not answer; None if it fails or returns another shape."""
    stack = yield GetMethod(address, method, arguments, required=False)
    with suppress(Mismatch, BocError):
        return None if stack is None else read(stack)
    return None


def detect_collection(me: AddrStd) -> Detection:
    """Ask get_collection_data: next index, content, owner."""
    answer = Results((yield GetMethod(me, "get_collection_data")), 3)
    fields = answer.read("text next_item_index, cell content, address owner")
    fields["content"] = _read_cell(fields["content"])
    return [Finding(NFT_COLLECTIONS.name, fields)]


def list_triggers(global_id: int | None) -> list[Trigger]:
    """Return the triggers of a network, None if it is not known which.

    On other networks than mainnet and testnet any item with a domain counts as one.
    """
    roots = None if global_id is None else ROOTS.get(global_id)
    return [
        Trigger("get_wallet_data", JETTON_WALLETS, detect_wallet),
        Trigger("get_jetton_data", JETTON_MASTERS, detect_master),
        Trigger("get_collection_data", NFT_COLLECTIONS, detect_collection),
        Trigger("get_nft_data", NFT_ITEMS, partial(detect_item, roots)),
    ]


def detect_item(roots: Collection[AddrStd] | None, me: AddrStd) -> Detection:
    """Ask an item and its collection; items of ``roots`` (None: of any) may be domains."""
    answer = Results((yield GetMethod(me, "get_nft_data")), 5)
    init, index, collection = answer.boolean(), answer.integer(), answer.address()
    owner, own = answer.address(), answer.maybe_cell()
    domain = None
    if collection is None:
        content = _read_cell(own)
    else:
        stack = yield GetMethod(collection, "get_nft_address_by_index", (index,))
        if Results(stack, 1).address() != me:
            raise Mismatch("the collection returns another item")
        content = yield from _ask_content(collection, index, own)
        if roots is None or collection in roots:
            domain = yield from _ask_domain(me)
    parties = {**address_fields("collection", collection), **address_fields("owner", owner)}
    if domain is not None:
        content = {**(content or {}), "domain": domain}
    fields = {"init": init, "item_index": str(index), **parties, "content": content}
    found = [Finding(NFT_ITEMS.name, fields)]
    if domain is not None:
        records = yield from _ask_records(me)
        found.append(Finding(DNS_RECORDS.name, {"domain": domain, **parties, **records}))
    return found


def _ask_domain(me: AddrStd) -> Generator[GetMethod, Any, str | None]:
    name = yield from _ask(me, "get_domain", _read_name)
    if name is not None:
        return name.replace("\0", "") + TON_SUFFIX
    labels = yield from _ask(me, "get_full_domain", _read_name)
    # ``me``, ``t``, ``name``, each ended by a zero byte, are ``name.t.me``.
    return labels and ".".join(reversed([part for part in labels.split("\0") if part]))


def _read_name(stack: list[Any]) -> str:
    value = Results(stack, 1).take()
    if not isinstance(value, CellSlice):
        raise Mismatch("expected a slice with a name")
    try:
        return read_words(value.copy()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Mismatch("the name is not UTF-8") from error


def _ask_content(
    collection: AddrStd, index: int, own: Cell | None
) -> Generator[GetMethod, Any, Content | None]:
    if own is None:
        return None
    whole = yield from _ask(
        collection, "get_nft_content", lambda stack: [Results(stack, 1).maybe_cell()], index, own
    )
    return _read_cell(own if whole is None else whole[0])


def _read_cell(cell: Cell | None) -> Content | None:
    return None if cell is None else read_content(cell.tree, cell.root)


def _ask_records(me: AddrStd) -> Generator[GetMethod, Any, dict[str, Any]]:
    itself = make_slice(0, 8)  # the name of one zero byte
    layout = "integer bits, maybe_cell records"
    found = yield from _ask(
        me, "dnsresolve", lambda stack: Results(stack, 2).read(layout), itself, _ALL_CATEGORIES
    )
    return read_records(None if found is None else found["records"])


TON_SUFFIX = ".ton"
MAIN_NETWORK, TEST_NETWORK = -239, -3
ROOTS = {
    network: frozenset(AddrStd(0, bytes.fromhex(account)) for account in accounts)
    for network, accounts in {
        MAIN_NETWORK: (
            "b774d95eb20543f186c06b371ab88ad704f7e256130caf96189368a7d0cb6ccf",  # .ton
            "80d78a35f955a14b679faa887ff4cd5bfc0f43b4a4eea2a7e6927f3701b273c2",  # t.me
        ),
        TEST_NETWORK: ("e33ed33a42eb2032059f97d90c706f8400bb256d32139ca707f1564ad699c7dd",),
    }.items()
}
"""Collections whose items are domains, by global id of the network."""

_NEXT_RESOLVER, _SMC_ADDRESS, _ADNL_ADDRESS, _STORAGE = 0xBA93, 0x9FD3, 0xAD01, 0x7473
_CATEGORIES = {
    int.from_bytes(sha256(category).digest(), "big"): (column, tag)
    for category, column, tag in (
        (b"dns_next_resolver", "next_resolver", _NEXT_RESOLVER),
        (b"wallet", "wallet", _SMC_ADDRESS),
        (b"site", "site_adnl", _ADNL_ADDRESS),
        (b"storage", "storage_bag_id", _STORAGE),
    )
}
"""Columns of records, and their tags, by category."""
_ADDRESSES = (_NEXT_RESOLVER, _SMC_ADDRESS)
NO_RECORDS: dict[str, Any] = {
    **address_fields("next_resolver", None),
    **address_fields("wallet", None),
    "site_adnl": None,
    "storage_bag_id": None,
}


def read_records(records: Cell | None) -> dict[str, Any]:
    """Return the record columns of a domain from its ``HashmapE 256 ^DNSRecord``.

    A record whose type does not match its category is left out.
    """
    found = dict(NO_RECORDS)
    with suppress(BocError):
        for key, value in iter_hashmap(*records, _KEY_BITS) if records else ():
            if key in _CATEGORIES:
                found |= _read_record(*_CATEGORIES[key], value)
    return found


def _read_record(column: str, tag: int, value: CellSlice) -> dict[str, Any]:
    try:
        record = value.tree.slice(value.load_ref()) if value.refs_left else value
        if record.load_uint(16) != tag:
            return {}
        if tag in _ADDRESSES:
            return address_fields(column, load_address(record))
        return {column: record.load_bytes(32)}
    except (BocError, Mismatch):
        return {}


_INDEX_BITS = 8


def detect_multisig(me: AddrStd) -> Detection:
    """Ask get_multisig_data: next seqno, threshold, signers, proposers."""
    answer = Results((yield GetMethod(me, "get_multisig_data")), 4)
    fields = answer.read("text next_order_seqno, small threshold, maybe_cell signers proposers")
    fields |= {name: _read_addresses(fields[name]) for name in ("signers", "proposers")}
    return [Finding(MULTISIG_WALLETS.name, fields)]


def detect_order(me: AddrStd) -> Detection:
    """Ask get_order_data of an order, and get_order_address of its multisig wallet.

    An order that is not initialised has only its multisig address and seqno.
    """
    answer = Results((yield GetMethod(me, "get_order_data")), 9)
    multisig, seqno = answer.required_address(), answer.integer()
    rest = [answer.take() for _ in range(7)]
    named = Results((yield GetMethod(multisig, "get_order_address", (seqno,))), 1)
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
    name for part in _ORDER.split(",") for name in part.split()[1:]
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
_ALLOWED_BITS = 264  # workchain:int8 account:uint256


def detect_vesting(me: AddrStd) -> Detection:
    """Ask get_vesting_data of a wallet with the one known code."""
    answer = Results((yield GetMethod(me, "get_vesting_data")), 8)
    fields = answer.read(
        "small start_time total_duration unlock_period cliff_duration, amount total_amount, "
        "address sender owner, maybe_cell whitelist"
    )
    fields["whitelist"] = _read_whitelist(fields["whitelist"])
    return [Finding(VESTING_CONTRACTS.name, fields)]


def _read_whitelist(dictionary: Cell | None) -> list[str]:
    if dictionary is None:
        return []
    keys = list_keys(dictionary.tree, dictionary.root, _ALLOWED_BITS)
    parts = (key.to_bytes(_ALLOWED_BITS // 8, "big") for key in keys)
    found = (AddrStd(int.from_bytes(part[:1], "big", signed=True), part[1:]) for part in parts)
    return sorted(map(str, found))


SALE, AUCTION, TELEMINT = "getgems_sale", "getgems_auction", "telemint"
_SALE_MAGIC, _AUCTION_MAGIC = 0x46495850, 0x415543  # "FIXP", "AUC"
_SALE_VALUES, _AUCTION_VALUES = 10, 19
_SALE_V4_VALUES, _AUCTION_V4_VALUES = 13, 26


def detect_sale(me: AddrStd) -> Detection:
    """Ask get_sale_data: its magic distinguishes fixed-price sales from auctions."""
    stack = yield GetMethod(me, "get_sale_data")
    magic = Results(stack, 1, more=True).integer()
    if magic == _SALE_MAGIC:
        return [_read_sale(Results(stack[1:], _SALE_VALUES))]
    if magic == _AUCTION_MAGIC:
        return [_read_auction(Results(stack[1:], _AUCTION_VALUES))]
    raise Mismatch("another kind of sale")


def detect_sale_v4(me: AddrStd) -> Detection:
    """Ask get_fix_price_data_v4; the jetton prices at its end are ignored."""
    stack = yield GetMethod(me, "get_fix_price_data_v4")
    return [_read_sale(Results(stack, _SALE_V4_VALUES))]


def detect_auction_v4(me: AddrStd) -> Detection:
    """Ask get_auction_data_v4."""
    stack: list[Value] = yield GetMethod(me, "get_auction_data_v4")
    # If it begins with three integers, the first one is the activation flag.
    leading = 1 if len(stack) == _AUCTION_V4_VALUES and isinstance(stack[2], int) else 0
    return [_read_auction(Results(stack[leading:], _AUCTION_V4_VALUES - leading))]


def detect_telemint(me: AddrStd) -> Detection:
    """Ask a Telemint item for its name, the state and terms of its auction, and royalties."""
    name = _read_name((yield GetMethod(me, "get_telemint_token_name")))
    state = Results((yield GetMethod(me, "get_telemint_auction_state")), 5)
    config = Results((yield GetMethod(me, "get_telemint_auction_config")), 6)
    royalty = Results((yield GetMethod(me, "royalty_params")), 3)
    details = {
        "token_name": name.replace("\0", ""),
        **state.read("raw_address bidder_address, text bid bid_ts min_bid, small end_time"),
        "beneficiary_address": _take_terms_address(config),
        **config.read("text initial_min_bid max_bid min_bid_step min_extend_time duration"),
        **royalty.read(
            "small royalty_numerator royalty_denominator, raw_address royalty_destination"
        ),
    }
    return [_make_finding(TELEMINT, {**address_fields("nft", me), **details})]


def _take_terms_address(stack: Results) -> str | None:
    """Return an address, or None for the zero returned if there are no terms."""
    value = stack.take()
    return None if value == 0 else Results([value], 1).raw_address()


_SALE = (
    "boolean is_complete, small created_at, address marketplace nft nft_owner, text full_price, "
    "raw_address marketplace_fee_address, text marketplace_fee, raw_address royalty_address, "
    "take royalty_amount"
)
_AUCTION = (
    "boolean end_flag, small end_time, address marketplace nft nft_owner, text last_bid, "
    "raw_address last_member, small min_step, raw_address mp_fee_address, "
    "small mp_fee_factor mp_fee_base, raw_address royalty_fee_address, "
    "small royalty_fee_factor royalty_fee_base, text max_bid min_bid, "
    "small created_at last_bid_at, boolean is_canceled"
)


def _read_sale(stack: Results) -> Finding:
    details = stack.read(_SALE)
    amount = details["royalty_amount"]
    if amount is not None and not isinstance(amount, int):
        raise Mismatch("expected an integer or null")
    details["royalty_amount"] = None if amount is None else str(amount)
    return _make_finding(SALE, details)


def _read_auction(stack: Results) -> Finding:
    return _make_finding(AUCTION, stack.read(_AUCTION))


_COLUMNS = (
    *address_fields("nft", None),
    *address_fields("nft_owner", None),
    *address_fields("marketplace", None),
    "created_at",
)


def _make_finding(kind: str, read: dict[str, Any]) -> Finding:
    """Return a row: what has no column of its own is a detail."""
    columns = {name: read.get(name) for name in _COLUMNS}
    details = {name: value for name, value in read.items() if name not in _COLUMNS}
    return Finding(NFT_SALES.name, {"kind": kind, **columns, "details": details})


_POOL_CODES = frozenset(
    map(
        bytes.fromhex,
        (
            "1275095b6da3911292406f4f4386f9e780099b854c6dee9ee2895ddce70927c1",
            "778f0d3fe6482c50888970df5e787f40f3a4ab282170c035a5920877058c99d3",
            "c0f9d14fbc8e14f0d72cba2214165eee35836ab174130912baf9dbfa43ead562",
        ),
    )
)
FACTORY = AddrStd(
    0, bytes.fromhex("5f0564fb5f604783db57031ce1cf668a88d4d4d6da6de4db222b4b920d6fd800")
)
_NATIVE, _JETTON = 0b0000, 0b0001


def detect_pool(me: AddrStd) -> Detection:
    """Ask a pool for its assets, type, reserves and fee, and the factory for its address."""
    assets = Results((yield GetMethod(me, "get_assets")), 2)
    slices = (assets.take(), assets.take())
    first, second = map(_read_asset, slices)
    is_stable = Results((yield GetMethod(me, "is_stable")), 1).boolean()
    reserves = Results((yield GetMethod(me, "get_reserves")), 2)
    fee = Results((yield GetMethod(me, "get_trade_fee")), 2)
    named = Results((yield GetMethod(FACTORY, "get_pool_address", (int(is_stable), *slices))), 1)
    if named.address() != me:
        raise Mismatch("the factory returns another pool")
    fields = {
        "dex": "dedust",
        "pool_type": "stable" if is_stable else "volatile",
        "asset_1": raw_text(first),
        "asset_2": raw_text(second),
        **reserves.read("amount reserve_1 reserve_2"),
        "fee": f"{fee.integer()}/{fee.integer()}",
    }
    return [Finding(DEX_POOLS.name, fields)]


def _read_asset(value: Value) -> AddrStd | None:
    """Read native$0000 or jetton$0001 workchain_id:int8 address:uint256."""
    if not isinstance(value, CellSlice):
        raise Mismatch("expected a slice with an asset")
    start = value.copy()
    kind = start.load_uint(4)
    if kind == _NATIVE:
        return None
    if kind != _JETTON:
        raise Mismatch("the asset is neither TON nor a jetton")
    return AddrStd(start.load_int(8), start.load_bytes(32))


TRIGGERS = (
    Trigger("get_sale_data", NFT_SALES, detect_sale),
    Trigger("get_fix_price_data_v4", NFT_SALES, detect_sale_v4),
    Trigger("get_auction_data_v4", NFT_SALES, detect_auction_v4),
    Trigger("get_telemint_token_name", NFT_SALES, detect_telemint),
    Trigger("get_assets", DEX_POOLS, detect_pool, _POOL_CODES),
    Trigger("get_multisig_data", MULTISIG_WALLETS, detect_multisig),
    Trigger("get_order_data", MULTISIG_ORDERS, detect_order),
    Trigger("get_vesting_data", VESTING_CONTRACTS, detect_vesting, frozenset({VESTING_CODE})),
)
