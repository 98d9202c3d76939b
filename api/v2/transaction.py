"""Transactions and their messages: histories of accounts, searches by message.

Comments are text, all other bodies are bags of cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tonlake.api.chain.account import ZERO_HASH
from tonlake.api.chain.arguments import HistoryParams, LocateParams
from tonlake.api.chain.block import LT_UNKNOWN, begins_at_zero_state, name_coverage
from tonlake.api.errors import AnswerNotFound, LiteServerError, NotDerived
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import render_raw
from tonlake.api.v2.value import (
    render_account,
    render_address,
    render_base64,
    render_boc,
    render_currencies,
    render_transaction_id,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.derive.body.codec import ENCRYPTED_OPCODE, TEXT_OPCODE, read_words
from tonlake.ingest.errors import BocError
from tonlake.lake.index.segment.declared import Record
from tonlake.queries.reader import Reader

_OPCODE_BITS = 32
_TEXT_TAGS = {TEXT_OPCODE: "msg.dataText", ENCRYPTED_OPCODE: "msg.dataEncryptedText"}


class Text(NamedTuple):
    """A text body, and its type name in version 2."""

    tag: str
    text: bytes


def render_message(row: Mapping[str, Any], *, is_std: bool = False) -> dict[str, Any]:
    """Return an ``ext.message``: plain addresses, and the body as text in ``message``.

    With ``is_std`` a ``raw.message``: addresses as objects, and no ``message``.
    """
    tree = parse_boc(row["body"])
    text = read_text(tree)
    render_party = render_account if is_std else render_address
    return {
        "@type": "raw.message" if is_std else "ext.message",
        "hash": render_base64(row["msg_hash"]),
        "value": str(row["value"] or 0),
        "extra_currencies": render_currencies(row["value_extra_currencies"]),
        "fwd_fee": str(row["fwd_fee"] or 0),
        "ihr_fee": "0",
        "created_lt": str(row["created_lt"] or 0),
        "body_hash": render_base64(row["body_hash"]),
        "source": render_party(row["source_workchain"], row["source"]),
        "destination": render_party(row["destination_workchain"], row["destination"]),
        "msg_data": _render_data(tree, text, row["init_state"]),
        **({} if is_std else _render_words(tree, text)),
    }


def _render_data(tree: CellTree, text: Text | None, init_state: bytes | None) -> dict[str, str]:
    """Return the ``msg_data`` of a body: text, encrypted text, or raw cells."""
    if text is not None:
        return {"@type": text.tag, "text": render_base64(text.text)}
    return {
        "@type": "msg.dataRaw",
        "body": render_boc(tree.data),
        "init_state": render_boc(init_state),
    }


def read_text(tree: CellTree) -> Text | None:
    """Return the text after an opcode, in a chain of cells; None without text or such cells."""
    cell = tree.roots[0]
    if tree.kind(cell) != ORDINARY or tree.bit_length(cell) < _OPCODE_BITS:
        return None
    start = tree.slice(cell)
    tag = _TEXT_TAGS.get(start.load_uint(_OPCODE_BITS))
    if tag is None:
        return None
    try:
        return Text(tag, read_words(start))
    except BocError:
        return None


def _render_words(tree: CellTree, text: Text | None) -> dict[str, str]:
    """Return ``message``: the comment, the bits of the root in base64, or {} if it is encrypted."""
    if text is None:
        bits = read_bits(tree, tree.roots[0])
        return {"message": render_base64(bits) + "\n" if bits else ""}
    if text.tag == _TEXT_TAGS[ENCRYPTED_OPCODE]:
        return {}
    try:
        return {"message": text.text.decode("utf-8")}
    except UnicodeDecodeError:
        return {"message": "", "message_decode_error": "the comment is not UTF-8"}


def read_bits(tree: CellTree, cell: int) -> bytes:
    """Return the data bits of any cell; the unused bits of the last byte are zero."""
    data = tree.payload(cell)
    rest = tree.bit_length(cell) % 8
    if not rest:
        return data
    return data[:-1] + bytes((data[-1] & 0xFF00 >> rest & 0xFF,))


DEFAULT_LIMIT = 10

Row = Mapping[str, Any]
NOT_LOCATED = "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time"
HASH_MISMATCH = "LITE_SERVER_UNKNOWN: transaction hash mismatch"


class Page(NamedTuple):
    """Transactions, newest first, and the id of the next one; lt 0 at the end."""

    records: Sequence[Record]
    next_lt: int
    next_hash: bytes


def answer_transactions(call: Call, params: HistoryParams) -> list[dict[str, Any]]:
    """getTransactions: newest first, starting at ``lt`` and ``hash``."""
    return _render_extended(call, _read_page(call, params).records)


def answer_transactions_std(call: Call, params: HistoryParams) -> dict[str, Any]:
    """getTransactionsStd: as getTransactions, with the id of the next transaction."""
    page = _read_page(call, params)
    return {
        "@type": "raw.transactions",
        "transactions": [
            {"@type": "raw.transaction", **fields}
            for fields in _render_all(call, page.records, is_std=True)
        ],
        "previous_transaction_id": render_transaction_id(page.next_lt, page.next_hash),
    }


def _read_page(call: Call, params: HistoryParams) -> Page:
    """Return a page without gaps; it is empty only if there are no transactions."""
    lt = params.start_lt
    if lt == 0:
        return Page((), 0, ZERO_HASH)
    address = params.address.address
    limit = params.limit or min(DEFAULT_LIMIT, call.settings.http.max_limit)
    keys = call.reader.rows(
        "v3/transaction_keys_of_account",
        workchain=address.workchain,
        account=address.account,
        end_lt=lt,
        limit=limit + 1,
    )
    records = _read_records(call, keys)
    if lt is not None and (not records or records[0].row["lt"] != lt):
        raise LiteServerError(NOT_LOCATED)
    if lt is not None and records[0].row["hash"] != params.hash:
        raise LiteServerError(HASH_MISMATCH)
    if not records and not begins_at_zero_state(call, call.reader.snapshot.last_mc_seqno):
        raise LiteServerError(f"{LT_UNKNOWN}: {name_coverage(call)}, and nothing of {address}")
    if lt is None and records and records[0].row["mc_seqno"] < call.reader.snapshot.ranges[-1][0]:
        raise LiteServerError(f"{LT_UNKNOWN}: {name_coverage(call)}, and no newest of {address}")
    page = cut_page(records, limit)
    requested = [record for record in page.records if record.row["lt"] > params.to_lt]
    if len(requested) < len(page.records):
        after = page.records[len(requested)].row
        return Page(requested, after["lt"], after["hash"])
    if len(requested) < limit and page.next_lt > params.to_lt:
        note = f"{name_coverage(call)}, and older transactions of {address} are outside"
        if lt is not None and len(requested) == 1:
            raise LiteServerError(f"{LT_UNKNOWN}: {note}")
        call.warn(note)
    return page


def cut_page(records: Sequence[Record], limit: int) -> Page:
    """Return at most ``limit`` records, up to the first gap in the chain of previous transactions.

    The first transaction of an account that was deleted and created again has no previous one; its
    history continues with the last transaction before the deletion.
    """
    taken: list[Record] = []
    next_lt, next_hash = 0, ZERO_HASH
    for record in records:
        row = record.row
        if taken and next_lt not in (0, row["lt"]):
            break
        next_lt, next_hash = row["lt"], row["hash"]
        if len(taken) == limit:
            break
        taken.append(record)
        next_lt, next_hash = row["prev_trans_lt"], row["prev_trans_hash"]
    return Page(taken, next_lt, next_hash)


def answer_receiver(call: Call, params: LocateParams, direction: str = "in") -> dict[str, Any]:
    """tryLocateTx, tryLocateResultTx: the transaction that received a message."""
    source, destination = params.source.address, params.destination.address
    row = call.reader.one(
        "v2/transaction_of_message",
        direction=direction,
        source_workchain=source.workchain,
        source=source.account,
        destination_workchain=destination.workchain,
        destination=destination.account,
        created_lt=params.created_lt,
    )
    if row is None:
        raise AnswerNotFound("transaction was not found")
    return _render_extended(call, _read_records(call, [row]))[0]


def answer_sender(call: Call, params: LocateParams) -> dict[str, Any]:
    """tryLocateSourceTx: the transaction that sent a message."""
    return answer_receiver(call, params, "out")


def _render_extended(
    call: Call,
    records: Sequence[Record],
    tag: str = "ext.transaction",
    *,
    is_std: bool = False,
) -> list[dict[str, Any]]:
    """Return transactions with their accounts as raw addresses."""
    names = [render_raw(record.row["workchain"], record.row["account"]) for record in records]
    return [
        {"@type": tag, **fields, "account": name}
        for name, fields in zip(names, _render_all(call, records, is_std=is_std), strict=True)
    ]


def _read_records(call: Call, keys: Sequence[Row]) -> list[Any]:
    return list(call.reader.rows("v3/transactions", keys=keys))


def render_in_block(call: Call, keys: Sequence[Row]) -> list[dict[str, Any]]:
    """Return ``raw.transactionExt`` objects."""
    records = _read_records(call, keys)
    return _render_extended(call, records, "raw.transactionExt", is_std=True)


def _render_all(call: Call, records: Sequence[Record], *, is_std: bool) -> Iterator[dict[str, Any]]:
    """Yield the fields that all kinds of transactions share."""
    bags = read_bags(call.reader, records)
    for record in records:
        yield render_transaction(
            record.row, record.messages, bags[record.row["hash"]], is_std=is_std
        )


def render_transaction(
    row: Row, messages: Sequence[Row], bag: bytes, *, is_std: bool
) -> dict[str, Any]:
    """Return the fields that all kinds of transactions share; without in_msg if there is none."""
    sent = [message for message in messages if message["direction"] == "out"]
    received = [one for one in messages if one["direction"] == "in"]
    fee = row["total_fees"] + sum(message["fwd_fee"] or 0 for message in sent)
    storage_fee = row["storage_fees_collected"] or 0
    return {
        "address": render_account(row["workchain"], row["account"]),
        "utime": row["now"],
        "data": render_boc(bag),
        "transaction_id": render_transaction_id(row["lt"], row["hash"]),
        "fee": str(fee),
        "storage_fee": str(storage_fee),
        "other_fee": str(fee - storage_fee),
        **({"in_msg": render_message(received[0], is_std=is_std)} if received else {}),
        "out_msgs": [render_message(message, is_std=is_std) for message in sent],
    }


def read_bags(reader: Reader, records: Sequence[Record]) -> dict[bytes, bytes]:
    """Return the bags of transactions by hash."""
    found = reader.rows("v2/bags", records=records)
    for row in found:
        if row["boc"] is None:
            raise NotDerived(
                f"this lake has transaction {row['hash'].hex()} without its bag of cells: an "
                "earlier version wrote it, or it is from the public data set; ingest its block "
                "from a node into a new lake"
            )
    return {row["hash"]: row["boc"] for row in found}
