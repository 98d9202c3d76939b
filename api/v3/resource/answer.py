"""Responses of version 3, and its resources about accounts.

A field whose default is ``UNSET`` is left out of the JSON; a None is written as null.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET

from tonlake.api.text.encoding import decode_currencies, encode_bytes
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Base64, Column, Currencies, Decimal, Kind, Omitted, Read
from tonlake.api.v3.layout.transaction import Block, Message, Transaction
from tonlake.api.v3.resource.action import Action
from tonlake.lake.index.segment.declared import MESSAGE_COLUMNS, Record
from tonlake.lake.index.segment.file import HASH_BYTES
from tonlake.lake.index.segment.segment import PARTS_AT
from tonlake.queries.reader import Row


class AddressBookRow(msgspec.Struct):
    """User-friendly form, domain and interfaces of an address."""

    user_friendly: str | None
    domain: str | None
    interfaces: list[str] | None


AddressBook = dict[str, AddressBookRow]


class TokenInfo(msgspec.Struct):
    """Type and metadata of a token contract; ``extra`` has all other keys.

    ``valid`` is left out if only the location of the content (``uri``) is known.
    """

    type: str
    valid: bool | Omitted = UNSET
    name: str | Omitted = UNSET
    symbol: str | Omitted = UNSET
    description: str | Omitted = UNSET
    image: str | Omitted = UNSET
    nft_index: str | Omitted = UNSET
    extra: dict[str, object] | Omitted = UNSET


class AddressMetadata(msgspec.Struct):
    """Token metadata; ``is_indexed`` is false if its content is off-chain and not fetched."""

    is_indexed: bool
    token_info: list[TokenInfo]


Metadata = dict[str, AddressMetadata]
"""By raw address; accounts that are not token contracts are left out."""


class Described(msgspec.Struct, kw_only=True):
    """The last fields of most responses: the addresses in it, and the metadata of tokens."""

    address_book: AddressBook
    metadata: Metadata


class MasterchainInfo(msgspec.Struct):
    """The newest and the oldest masterchain block in the lake."""

    last: Block
    first: Block


class Blocks(msgspec.Struct):
    """A page of blocks."""

    blocks: list[Block]


class Transactions(msgspec.Struct):
    """A page of transactions, and the addresses in them."""

    transactions: list[Transaction]
    address_book: AddressBook


class ShardState(msgspec.Struct):
    """The newest block of every shard, with the transactions in those blocks."""

    blocks: list[Block]
    transactions: list[Transaction]
    address_book: AddressBook


class Messages(Described):
    """A page of messages, and the addresses in them."""

    messages: list[Message]


class AccountStateFull(msgspec.Struct):
    """An account's newest state, with code and data."""

    address: Annotated[str, Kind.EXTRA]
    account_state_hash: Annotated[Base64, Column("hash")]
    balance: Decimal | None
    extra_currencies: Currencies | None
    status: Annotated[str, Column("account_status")] | None
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    contract_methods: Annotated[list[int], Kind.EXTRA] | None
    interfaces: Annotated[list[str], Kind.EXTRA] | None
    frozen_hash: Base64 | Omitted = UNSET
    data_hash: Base64 | Omitted = UNSET
    code_hash: Base64 | Omitted = UNSET
    data_boc: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    code_boc: Annotated[str, Kind.EXTRA] | Omitted = UNSET


class AccountStates(Described):
    """States of the requested accounts, unknown ones omitted."""

    accounts: list[AccountStateFull]


class WalletState(msgspec.Struct):
    """A wallet decoded from its data; other contracts have only the fields of an account."""

    address: Annotated[str, Kind.EXTRA]
    is_wallet: Annotated[bool, Kind.EXTRA]
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    wallet_type: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    seqno: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    wallet_id: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    balance: Decimal | Omitted = UNSET
    extra_currencies: (
        Annotated[Currencies, Read(lambda text: decode_currencies(text) or UNSET)] | Omitted
    ) = UNSET
    is_signature_allowed: Annotated[bool, Kind.EXTRA] | Omitted = UNSET
    status: Annotated[str, Column("account_status")] | Omitted = UNSET
    code_hash: Base64 | Omitted = UNSET


class WalletStates(Described):
    """States of the requested wallets."""

    wallets: list[WalletState]


class AccountBalance(msgspec.Struct):
    """An account and its balance in nanoton."""

    account: str
    balance: str


class AddressInformation(msgspec.Struct):
    """An account, with version 2 field names."""

    balance: Decimal
    code: Annotated[str, Kind.EXTRA] | None
    data: Annotated[str, Kind.EXTRA] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    frozen_hash: Annotated[str, Kind.EXTRA] | None
    status: Annotated[str, Column("account_status")]


class WalletInformation(msgspec.Struct):
    """A wallet, with version 2 field names."""

    balance: Decimal
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")]
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")]
    status: Annotated[str, Column("account_status")]
    wallet_type: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    seqno: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    wallet_id: Annotated[int, Kind.EXTRA] | Omitted = UNSET


TRACE_TRANSACTIONS = 4000
"""The transactions of a larger trace are left out."""
PAGE_TRANSACTIONS = 50_000
"""Limit of transactions in one response with traces."""

TOO_LARGE = "trace is too large"


class TraceMeta(msgspec.Struct):
    """State of a trace (complete, pending or broken) and its counts."""

    trace_state: Annotated[str, Column("state")]
    messages: int
    transactions: int
    pending_messages: int
    classification_state: str = "unclassified"


class Trace(msgspec.Struct):
    """A trace; ``trace`` is a tree of objects with tx_hash, in_msg_hash and children."""

    trace_id: Base64
    external_hash: Base64 | None
    mc_seqno_start: Decimal
    mc_seqno_end: Decimal
    start_lt: Decimal
    start_utime: int
    end_lt: Decimal
    end_utime: int
    trace_info: TraceMeta
    is_incomplete: Annotated[bool, Kind.EXTRA]
    warning: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    actions: list[Action] | Omitted = UNSET
    trace: msgspec.Raw | Omitted = UNSET
    transactions_order: list[str] | Omitted = UNSET
    transactions: dict[str, Transaction] | Omitted = UNSET


class Traces(Described):
    """A page of traces, and the addresses in them."""

    traces: list[Trace]


class Events(Described):
    """A page of traces (former name)."""

    events: list[Trace]


class Head(msgspec.Struct, frozen=True, gc=False):
    """A node of the tree: its in message, and whether it sent messages."""

    in_msg_hash: str | None
    has_sent: bool


def head_of(transaction: Transaction) -> Head:
    """Return the tree node of a transaction."""
    message = transaction.in_msg
    return Head(None if message is None else message.hash, bool(transaction.out_msgs))


S = TypeVar("S", bound=msgspec.Struct)


def read_sent(answer: S) -> S:
    """Return a response with structs in place of the JSON that it is sent with."""
    return msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))


def head_of_record(record: Record) -> Head:
    """Return the tree node of a transaction, from its record."""
    messages = record.messages
    has_in = bool(messages) and messages[0]["direction"] == "in"
    in_hash = encode_bytes(messages[0]["msg_hash"]) if has_in else None
    return Head(in_hash, len(messages) > has_in)


_DIRECTION_AT, _MSG_HASH_AT = map(MESSAGE_COLUMNS.index, ("direction", "msg_hash"))


def read_head(record: Sequence[Any], values: memoryview | bytes) -> Head:
    """Return the node of a record that is a list; its numbers stand for 32 bytes of ``values``."""
    messages, in_hash = record[PARTS_AT], None
    if messages and messages[0][_DIRECTION_AT] == "in":
        start = messages[0][_MSG_HASH_AT] * HASH_BYTES
        in_hash = encode_bytes(values[start : start + HASH_BYTES])
    return Head(in_hash, len(messages) > (in_hash is not None))


def render_trace(
    row: Row, members: Sequence[Row] | None, transactions: Iterable[tuple[Any, Head]]
) -> Trace:
    """Return a trace.

    ``members`` are hash and parent_hash of its transactions by logical time (None: too many);
    ``transactions`` begin with these, as they are shown and as nodes of the tree.
    """
    trace = make_builder(Trace)((row,), is_incomplete=row["state"] != "complete")
    if members is None:
        trace.is_incomplete, trace.warning = True, TOO_LARGE
        return trace
    texts = {member["hash"]: encode_bytes(member["hash"]) for member in members}
    trace.transactions_order = list(texts.values())
    trace.transactions = shown = {}
    heads: dict[str, Head] = {}
    children: dict[str, list[str]] = {}
    pairs = zip(texts.values(), members, transactions, strict=False)  # others may follow
    for tx_hash, member, (shown[tx_hash], heads[tx_hash]) in pairs:
        parent = member["parent_hash"]
        if parent is not None and tx_hash != trace.trace_id:
            children.setdefault(texts[parent], []).append(tx_hash)
    trace.trace = msgspec.Raw(encode_tree(trace.trace_id, children, heads))
    return trace


def encode_tree(
    root: str, children: Mapping[str, Sequence[str]], heads: Mapping[str, Head]
) -> bytes:
    """Return the JSON of the tree under ``root``, of any depth.

    ``children`` is [] if no messages were sent, and null if none of those sent has arrived.
    """
    parts: list[str] = []
    walks = [iter((root,))]
    comma = ""
    while walks:
        for tx_hash in walks[-1]:
            head, kids = heads[tx_hash], children.get(tx_hash)
            message = f'"in_msg_hash":"{head.in_msg_hash}",' if head.in_msg_hash else ""
            start = f'{comma}{{"tx_hash":"{tx_hash}",{message}"children":'
            if kids:
                parts.append(f"{start}[")
                walks.append(iter(kids))
                comma = ""
                break
            parts.append(f"{start}null}}" if head.has_sent else f"{start}[]}}")
            comma = ","
        else:
            walks.pop()
            parts.append("]}")
            comma = ","
    return "".join(parts[:-1]).encode()
