"""The operation about messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.request.params import (
    AddressOrNull,
    Flag,
    Hash,
    Hashes,
    NoAddress,
    Opcode,
    Text,
)
from tonlake.api.text.address import Address
from tonlake.api.v3.layout.message import Message
from tonlake.api.v3.layout.native import make_row_writer
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import SpanPage, operation
from tonlake.api.v3.resource.answer import Messages
from tonlake.api.v3.route.transaction import check_direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tonlake.api.request.call import Call

Row = dict[str, Any]


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
    """List messages with the transactions at both ends.

    Raises:
        RequestInvalid: an unknown direction.
        NotCovered: the result is empty, and the lake does not cover the requested time.
    """
    rows = find_rows(call, query)
    if not rows:
        query.check_covered(call.reader)
    named = set(list_addresses(rows))
    write = make_row_writer(Message, call.settings.http.opcode_format)
    return Messages(
        messages=[write((row,)) for row in rows],
        address_book=read_address_book(call, named),
        metadata=read_metadata(call, named),
    )


def find_rows(call: Call, query: MessagesQuery) -> list[Any]:
    """Return a page of messages, with the last transactions at their ends."""
    return call.reader.rows(
        "v3/messages",
        msg_hashes=[*query.msg_hash, *query.hash],
        body_hash=query.body_hash,
        opcode=query.opcode,
        direction=check_direction(query.direction),
        **_end_of("source", query.source),
        **_end_of("destination", query.destination),
        exclude_externals=bool(query.exclude_externals),
        only_externals=bool(query.only_externals),
        by_time=query.by_time,
        **query.filters(),
    )


def _end_of(name: str, end: Address | NoAddress | None) -> dict[str, Any]:
    """Return the query parameters of one end: an account, none, or any."""
    account = end if isinstance(end, Address) else None
    return {
        f"{name}_workchain": account and account.workchain,
        name: account and account.account,
        f"no_{name}": isinstance(end, NoAddress),
    }


def list_addresses(rows: Iterable[Row]) -> Iterator[Address]:
    """Yield the accounts at the ends of messages."""
    for row in rows:
        for end in ("source", "destination"):
            if row[end] is not None:
                yield Address(row[f"{end}_workchain"], row[end])


routes = [operation("/messages", MessagesQuery, get_messages)]
