"""Messages by hash, by opcode or by body: from look-ups where a snapshot has them."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from lake.lookup.message_page import creation_of

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
) -> list[Any] | None:
    """Return a page of messages by one of the three: as ``v3/message_keys`` and their rows.

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
    for line in lines:
        if line.direction == "in":
            line.in_tx_hash = line.tx_hash
        else:
            line.out_tx_hash = line.tx_hash
    for number, others in lookups.find_other_ends(lines).items():
        lines[number] = _join_ends([lines[number], *others])
    return lines


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


def _messages_by_hash(lookups: Lookups, hashes: Sequence[bytes], page: Slice) -> list[Any]:
    ends: dict[bytes, dict[tuple[bytes, str, int], Any]] = {}
    for msg_hash in hashes:
        for line in lookups.find_messages(msg_hash):
            place = line.tx_hash, line.direction, line.msg_index
            ends.setdefault(line.msg_hash, {})[place] = line
    found = [_join_ends(list(lines.values())) for lines in ends.values()]
    found.sort(key=creation_of, reverse=page.descending)
    return found[page.offset : page.offset + page.limit]


def _join_ends(lines: Sequence[Any]) -> Any:  # noqa: ANN401 - a row
    """Return the last end of a message, with the last transactions at both."""
    ends = {line.direction: line.tx_hash for line in sorted(lines, key=_tx_lt)}
    last = max(lines, key=_tx_lt)
    last.in_tx_hash, last.out_tx_hash = ends.get("in"), ends.get("out")
    return last


_tx_lt = attrgetter("tx_lt")
