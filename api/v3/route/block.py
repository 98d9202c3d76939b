"""Operations about blocks, transactions and messages."""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from tonlake.api.chain.block import find_masters, list_block_keys
from tonlake.api.errors import AnswerNotFound, NotCovered, RequestInvalid
from tonlake.api.request.call import (
    AddressOrNull,
    Call,
    Flag,
    Hash,
    Hashes,
    Int32,
    NoAddress,
    OneAddress,
    Opcode,
    Query,
    Shard,
    Text,
)
from tonlake.api.text.encoding import Address
from tonlake.api.v3.layout.build import make_builder, make_row_writer
from tonlake.api.v3.layout.transaction import Block, Message
from tonlake.api.v3.page.listed import describe
from tonlake.api.v3.page.operation import (
    INT32_MAX,
    SortedPage,
    SpanPage,
    check_mc_seqno,
    check_no_gap,
    check_seqno,
    operation,
)
from tonlake.api.v3.page.transaction_page import (
    TransactionsQuery,
    check_covered,
    find_keys,
    write_transactions,
)
from tonlake.api.v3.resource.answer import (
    Blocks,
    MasterchainInfo,
    Messages,
    ShardState,
    Transactions,
)
from tonlake.lake.account import MASTERCHAIN
from tonlake.queries.reader import Reader, Row

_MASTERCHAIN_SHARD = {"workchain": MASTERCHAIN, "shard": -(1 << 63)}


def render_block(row: Mapping[str, Any]) -> Block:
    """Return the header of a row of ``blocks``."""
    workchain, names = row["workchain"], ("prev", "prev2")
    previous = [
        {"workchain": workchain, "shard": row[f"{name}_shard"], "seqno": row[f"{name}_seqno"]}
        for name in names
        if row[f"{name}_seqno"] is not None
    ]
    master = _MASTERCHAIN_SHARD | {"seqno": row["mc_seqno"]}
    block: Block = make_builder(Block)((row, master, previous))
    return block


class BlocksQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of blocks, combined by AND."""

    workchain: Int32 = None
    shard: Shard = None
    seqno: Int32 = None
    root_hash: Hash = None
    file_hash: Hash = None
    mc_seqno: Int32 = None


class ShardStateQuery(Query, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Int32 = None


class McBlockPage(SortedPage, frozen=True, kw_only=True):
    """A page of what a masterchain block commits."""

    seqno: Int32 = None


def get_masterchain_info(call: Call, _query: Query) -> MasterchainInfo:
    """Show the newest and the oldest masterchain block in the lake."""
    return call.reader.lasting("masterchain info", lambda: _describe_ends(call.reader))


def _describe_ends(reader: Reader) -> MasterchainInfo:
    ends = {max(1, reader.snapshot.first_mc_seqno), reader.snapshot.last_mc_seqno}
    rows = [row for seqno in sorted(ends) for row in find_masters(reader, seqno)]
    if not rows:
        raise NotCovered("the lake holds no masterchain block yet")
    return MasterchainInfo(last=render_block(rows[-1]), first=render_block(rows[0]))


def get_blocks(call: Call, query: BlocksQuery) -> Blocks:
    """List blocks."""
    rows = _find_blocks(call, query)
    if not rows:
        check_mc_seqno(call.reader, query.mc_seqno)
        if query.seqno is not None:
            check_seqno(call.reader, query.workchain, query.shard, query.seqno)
        is_open = query.mc_seqno is None and query.seqno is None
        query.check_covered(call.reader, may_lie_in_gap=is_open)
    return Blocks(blocks=[render_block(row) for row in rows])


def get_shard_blocks(call: Call, query: McBlockPage) -> Blocks:
    """List the blocks committed by a masterchain block, including itself.

    They are ordered by workchain and signed shard id unless ``sort`` is set.
    """
    requested = query.seqno or 0
    first, limit = query.offset or 0, query.limit or 0
    rows = _find_blocks(call, BlocksQuery(mc_seqno=requested, limit=INT32_MAX, sort=query.sort))
    if query.sort is None:
        rows.sort(key=itemgetter("workchain", "shard", "seqno"))
    rows = rows[first : first + limit]
    if not rows:
        _check_mc_block(call, requested)
    return Blocks(blocks=[render_block(row) for row in rows])


def get_shard_state(call: Call, query: ShardStateQuery) -> ShardState:
    """List the newest block of every shard as of a masterchain block, with transactions."""
    requested = query.seqno or 0
    tops = call.reader.rows("v3/shard_tops", mc_seqno=requested)
    if not tops:
        _check_mc_block(call, requested)
    rows = [row for row in tops if row["seqno"] is not None]
    for row in tops:
        if row["seqno"] is None:
            shard = row["top_shard"] & (1 << 64) - 1
            top = f"({row['top_workchain']},{shard:016x},{row['top_seqno']})"
            call.warn(f"block {top} is not in the lake")
    keys = list_block_keys(call.reader, rows, call.settings.http.max_limit)
    if len(keys) < sum(row["tx_count"] for row in rows):
        call.warn(f"only the first {len(keys)} transactions are shown")
    page = write_transactions(call, keys)
    return ShardState(
        blocks=[render_block(row) for row in rows],
        transactions=page.transactions,
        address_book=page.address_book,
    )


def _find_blocks(call: Call, query: BlocksQuery) -> list[Row]:
    return call.reader.rows(
        "v3/blocks", **{name: getattr(query, name) for name in _FILTERS}, **query.filters()
    )


_FILTERS = ("workchain", "shard", "seqno", "root_hash", "file_hash", "mc_seqno")


def _check_mc_block(call: Call, mc_seqno: int) -> None:
    """Refuse a block that is not covered, with TON Center's text and the covered range."""
    try:
        check_mc_seqno(call.reader, mc_seqno)
    except NotCovered as error:
        raise NotCovered(f"blocks not found: {error}") from error


class MessageTransactionsQuery(SortedPage, frozen=True, kw_only=True):
    """Filters of messages; one of the first three is required."""

    msg_hash: Hashes = ()
    body_hash: Hash = None
    opcode: Opcode = None
    direction: Text = None
    source: OneAddress = None
    destination: OneAddress = None


class AdjacentQuery(Query, frozen=True, kw_only=True):
    """A transaction, and the direction of its messages."""

    mandatory = ("hash",)

    hash: Hash = None
    direction: Text = None


def get_transactions(call: Call, query: TransactionsQuery) -> Transactions:
    """List transactions."""
    keys = find_keys(call, query)
    if not keys:
        check_covered(call, query)
    return write_transactions(call, keys)


def get_block_transactions(call: Call, query: McBlockPage) -> Transactions:
    """List the transactions that a masterchain block commits."""
    requested = TransactionsQuery(
        mc_seqno=query.seqno or 0, limit=query.limit, offset=query.offset, sort=query.sort
    )
    return get_transactions(call, requested)


def get_message_transactions(call: Call, query: MessageTransactionsQuery) -> Transactions:
    """List transactions that consumed or produced a message."""
    if not query.msg_hash and query.body_hash is None and query.opcode is None:
        raise RequestInvalid("at least one of msg_hash, body_hash, opcode should be specified")
    direction = check_direction(query.direction)
    if query.opcode is not None and not query.msg_hash and query.body_hash is None:
        direction = direction or "in"
    keys = call.reader.rows(
        "v3/transaction_keys_by_message",
        msg_hashes=list(query.msg_hash),
        body_hash=query.body_hash,
        opcode=query.opcode,
        direction=direction,
        **_name_end("source", query.source),
        **_name_end("destination", query.destination),
        descending=query.descending,
        limit=query.limit or 0,
        offset=query.offset or 0,
    )
    if not keys and not query.offset:
        check_no_gap(call.reader)
    return write_transactions(call, keys)


def get_adjacent_transactions(call: Call, query: AdjacentQuery) -> Transactions:
    """List the transactions that sent to or received from a transaction."""
    if query.hash is None:
        raise RequestInvalid("hash is required")
    direction = query.direction if query.direction in ("in", "out") else None
    keys = call.reader.rows("v3/transaction_keys_adjacent", hash=query.hash, direction=direction)
    if not keys:
        raise AnswerNotFound("adjacent transactions not found")
    return write_transactions(call, keys)


def check_direction(direction: str | None) -> str | None:
    """Return ``in``, ``out`` or None."""
    if direction not in (None, "in", "out"):
        raise RequestInvalid("direction should be one of: in, out")
    return direction


class MessagesQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of messages, combined by AND. ``hash`` is an alias of msg_hash."""

    msg_hash: Hashes = ()
    hash: Hashes = ()
    body_hash: Hash = None
    source: AddressOrNull = None
    destination: AddressOrNull = None
    opcode: Opcode = None
    direction: Text = None
    exclude_externals: Flag = None
    only_externals: Flag = None


def get_messages(call: Call, query: MessagesQuery) -> Messages:
    """List messages with the transactions at both ends."""
    rows = find_rows(call, query)
    if not rows:
        query.check_covered(call.reader)
    write = make_row_writer(Message, call.settings.http.opcode_format)
    messages = [write((row,)) for row in rows]
    return Messages(messages, **describe(call, list_ends(rows)))


def find_rows(call: Call, query: MessagesQuery) -> list[Any]:
    """Return a page of messages, with the last transactions at their ends."""
    return call.reader.rows(
        "v3/messages",
        msg_hashes=[*query.msg_hash, *query.hash],
        body_hash=query.body_hash,
        opcode=query.opcode,
        direction=check_direction(query.direction),
        **_name_end("source", query.source),
        **_name_end("destination", query.destination),
        no_source=isinstance(query.source, NoAddress),
        no_destination=isinstance(query.destination, NoAddress),
        exclude_externals=bool(query.exclude_externals),
        only_externals=bool(query.only_externals),
        by_time=query.by_time,
        **query.filters(),
    )


def _name_end(name: str, end: Address | NoAddress | None) -> dict[str, Any]:
    """Return the query parameters of one end: an account, or any."""
    account = None if isinstance(end, NoAddress) else end
    return {f"{name}_workchain": account and account.workchain, name: account and account.account}


def list_ends(rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
    """Yield workchain and id of the accounts at the ends of messages."""
    for row in rows:
        for end in ("source", "destination"):
            account = row[end]
            if account is not None:
                yield row[f"{end}_workchain"], account


routes = [
    operation("/masterchainInfo", Query, get_masterchain_info),
    operation("/blocks", BlocksQuery, get_blocks),
    operation("/masterchainBlockShards", McBlockPage, get_shard_blocks),
    operation("/masterchainBlockShardState", ShardStateQuery, get_shard_state),
    operation("/transactions", TransactionsQuery, get_transactions),
    operation("/transactionsByMasterchainBlock", McBlockPage, get_block_transactions),
    operation("/transactionsByMessage", MessageTransactionsQuery, get_message_transactions),
    operation("/adjacentTransactions", AdjacentQuery, get_adjacent_transactions),
    operation("/messages", MessagesQuery, get_messages),
]
