"""Jettons (TEP-74, TEP-89), NFTs (TEP-62), their content (TEP-64), and domains (TEP-81)."""

import base64
from collections.abc import Collection, Generator, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from typing import Any

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import read_words
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
    make_slice,
)
from tonlake.ingest.errors import BocError
from tonlake.lake.schema.contract import (
    DNS_RECORDS,
    JETTON_MASTERS,
    JETTON_WALLETS,
    NFT_COLLECTIONS,
    NFT_ITEMS,
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


def detect_master(me: Address) -> Detection:
    """Ask get_jetton_data: total supply, mintable flag, administrator, content, wallet code."""
    answer = Results((yield Question(me, "get_jetton_data")), 5)
    fields = answer.read("amount total_supply, boolean mintable, address admin, cell content")
    fields["content"] = _read_cell(fields["content"])
    fields["wallet_code_hash"] = answer.cell().hash
    return [Finding(JETTON_MASTERS.name, fields)]


def detect_wallet(me: Address) -> Detection:
    """Ask get_wallet_data of a wallet, and get_wallet_address of its master.

    For wallets of mintless jettons, is_claimed shows whether the airdrop was claimed.
    """
    answer = Results((yield Question(me, "get_wallet_data")), 4)
    balance, owner, jetton = answer.amount(), answer.required_address(), answer.required_address()
    answer.cell()
    named = Results((yield Question(jetton, "get_wallet_address", (owner.slice(),))), 1)
    if named.address() != me:
        raise Mismatch("the master returns another wallet")
    claimed = yield Question(me, "is_claimed", required=False)
    fields = {
        "balance": balance,
        **address_fields("owner", owner),
        **address_fields("jetton", jetton),
        "is_claimed": None if claimed is None else Results(claimed, 1).boolean(),
    }
    return [Finding(JETTON_WALLETS.name, fields)]


_ALL_CATEGORIES = 0


def detect_collection(me: Address) -> Detection:
    """Ask get_collection_data: next index, content, owner."""
    answer = Results((yield Question(me, "get_collection_data")), 3)
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


def detect_item(roots: Collection[Address] | None, me: Address) -> Detection:
    """Ask an item and its collection; items of ``roots`` (None: of any) may be domains."""
    answer = Results((yield Question(me, "get_nft_data")), 5)
    init, index, collection = answer.boolean(), answer.integer(), answer.address()
    owner, own = answer.address(), answer.maybe_cell()
    domain = None
    if collection is None:
        content = _read_cell(own)
    else:
        stack = yield Question(collection, "get_nft_address_by_index", (index,))
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


def _ask_domain(me: Address) -> Generator[Question, Any, str | None]:
    name = yield Question(me, "get_domain", required=False)
    if name is not None:
        return read_text(_take_slice(name)) + TON_SUFFIX
    labels = yield Question(me, "get_full_domain", required=False)
    return None if labels is None else join_labels(_take_slice(labels))


def _take_slice(stack: list[Any]) -> CellSlice:
    value = Results(stack, 1).take()
    if not isinstance(value, CellSlice):
        raise Mismatch("expected a slice with a name")
    return value


def _ask_content(
    collection: Address, index: int, own: Cell | None
) -> Generator[Question, Any, Content | None]:
    if own is None:
        return None
    stack = yield Question(collection, "get_nft_content", (index, own), required=False)
    return _read_cell(own if stack is None else Results(stack, 1).maybe_cell())


def _read_cell(cell: Cell | None) -> Content | None:
    return None if cell is None else read_content(cell.tree, cell.root)


def _ask_records(me: Address) -> Generator[Question, Any, dict[str, Any]]:
    itself = make_slice(0, 8)  # the name of one zero byte
    stack = yield Question(me, "dnsresolve", (itself, _ALL_CATEGORIES), required=False)
    if stack is None:
        return read_records(None)
    answer = Results(stack, 2)
    answer.integer()
    return read_records(answer.maybe_cell())


TON_SUFFIX = ".ton"
MAIN_NETWORK, TEST_NETWORK = -239, -3
ROOTS = {
    network: frozenset(Address(0, bytes.fromhex(account)) for account in accounts)
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


def read_text(start: CellSlice) -> str:
    """Return the text of a slice and of the cells chained to it; raise Mismatch if it is none."""
    return _load_text(start).replace("\0", "")


def join_labels(start: CellSlice) -> str:
    """Return ``name.t.me`` for ``me``, ``t``, ``name``, each ended by a zero byte; or Mismatch."""
    return ".".join(reversed([label for label in _load_text(start).split("\0") if label]))


def _load_text(start: CellSlice) -> str:
    try:
        return read_words(start.copy()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Mismatch("the name is not UTF-8") from error


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
