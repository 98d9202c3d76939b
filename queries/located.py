"""Messages by hash, by opcode or by body: from look-ups where a snapshot has them."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from lake.lookup.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.lookup.lookups import Lookups
    from queries.exact import Slice
    from queries.reader import Reader

Row = dict[str, Any]


def find_messages(
    reader: Reader,
    page: Slice,
    *,
    hashes: Sequence[bytes] = (),
    body_hash: bytes | None = None,
    opcode: int | None = None,
) -> list[Row] | None:
    """Return a page of messages by one of the three, as ``v3/message_keys``, each with its row.

    None without look-ups, or where the page is too deep for them.
    """
    lookups = reader.lookups
    if lookups is None:
        return None
    if hashes:
        return _messages_by_hash(lookups, hashes, page)
    limit, offset, descending = page
    if opcode is not None:
        lines = lookups.read_opcode_messages(
            opcode, descending=descending, offset=offset, limit=limit
        )
    else:
        lines = lookups.read_body_messages(
            body_hash or b"", descending=descending, offset=offset, limit=limit
        )
    if lines is None:
        return None
    return [_describe(ends) for ends in lookups.find_all_ends(lines)]


def find_end_transactions(
    reader: Reader, msg_hashes: Sequence[bytes], direction: str | None, page: Slice
) -> list[Row] | None:
    """Return the keys of the transactions at the ends of messages of some hashes.

    As ``v3/transaction_keys_by_message`` with hashes and a direction alone. None without look-ups.
    """
    lookups = reader.lookups
    if lookups is None:
        return None
    tx_hashes = {
        line.tx_hash
        for msg_hash in msg_hashes
        for line in lookups.find_messages(msg_hash)
        if direction in (None, line.direction)
    }
    hits = [hit for hit in map(lookups.find_transaction, tx_hashes) if hit is not None]
    keys = [
        {"hash": hit.run.hash_of(hit.row), "lt": hit.run.lt[hit.row], "hit": hit} for hit in hits
    ]
    keys.sort(key=_account)
    keys.sort(key=itemgetter("lt"), reverse=page.descending)
    return keys[page.offset : page.offset + page.limit]


def _account(key: Row) -> tuple[int, bytes]:
    run, row = key["hit"]
    account, workchain = run.account_of(run.account_number(row))
    return workchain, account


def _messages_by_hash(lookups: Lookups, hashes: Sequence[bytes], page: Slice) -> list[Row]:
    ends: dict[bytes, dict[tuple[bytes, str, int], Any]] = {}
    for msg_hash in hashes:
        for line in lookups.find_messages(msg_hash):
            place = line.tx_hash, line.direction, line.msg_index
            ends.setdefault(line.msg_hash, {})[place] = line
    found = [_describe(list(lines.values())) for lines in ends.values()]
    found.sort(key=_creation, reverse=page.descending)
    return found[page.offset : page.offset + page.limit]


def _creation(key: Row) -> tuple[int, bytes]:
    created_lt = key["line"].created_lt
    return NO_LT if created_lt is None else created_lt, key["msg_hash"]


def _describe(lines: Sequence[Any]) -> Row:
    """Return one message, with the last transactions at its two ends."""
    ends = {"in": None, "out": None}
    last = lines[0]
    if len(lines) == 1:
        ends[last.direction] = last.tx_hash
    else:
        for line in sorted(lines, key=_tx_lt):
            ends[line.direction] = line.tx_hash
            last = line if line.tx_lt > last.tx_lt else last
    return {
        "msg_hash": last.msg_hash,
        "in_tx_hash": ends["in"],
        "out_tx_hash": ends["out"],
        "tx_hash": last.tx_hash,
        "tx_lt": last.tx_lt,
        "line": last,
    }


_tx_lt = attrgetter("tx_lt")
