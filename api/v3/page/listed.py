"""Pages of contracts and of transfers: structs of rows, and the addresses in them."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, encode_bytes, parse_address
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Kind, list_fields
from tonlake.api.v3.page.book import write_address_book
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.queries.reader import Row

S = TypeVar("S")


def describe(call: Call, accounts: Iterable[tuple[int, bytes]]) -> dict[str, Any]:
    """Return the address book and the token metadata of accounts, the fields of ``Described``."""
    named = set(accounts)
    book = write_address_book(call, named)
    return {"address_book": book, "metadata": read_metadata(call, named)}


def list_addresses(struct: Callable[..., Any], rows: Iterable[Row]) -> set[Address]:
    """Return the accounts in the rows that the struct shows as raw addresses."""
    columns = _list_columns(struct)
    return {
        Address(row[workchain], row[account])
        for row in rows
        for workchain, account in columns
        if row[account] is not None
    }


def find_addresses(shown: object) -> set[Address]:
    """Return every raw address in a response."""
    text = msgspec.json.encode(shown).decode()
    return {parse_address(each) for each in QUOTED_ADDRESS.findall(text)}


QUOTED_ADDRESS = re.compile(r'"(-?[0-9]{1,10}:[0-9A-F]{64})"')


@cache
def _list_columns(struct: Callable[..., Any]) -> tuple[tuple[str, str], ...]:
    fields = list_fields(struct)
    return tuple(each.column[:2] for each in fields if each.kind is Kind.ACCOUNT)


def render_rows(struct: Callable[..., S], rows: Iterable[Row]) -> list[S]:
    """Return the struct of each row."""
    build = make_builder(struct)
    return [build((row,)) for row in rows]


def render_moves(call: Call, struct: Callable[..., S], rows: Sequence[Row]) -> list[S]:
    """Return the struct of each transfer, with its trace id if known."""
    traced: list[Row] = []
    if rows:
        lts = [row["lt"] for row in rows]
        span = {"first_lt": min(lts), "last_lt": max(lts)}
        hashes = [row["tx_hash"] for row in rows]
        traced = call.reader.rows("v3/transaction_traces", hashes=hashes, **span)
    build = make_builder(struct)
    written = {row["hash"]: encode_bytes(row["trace_id"]) for row in traced}
    return [build((row,), trace_id=written.get(row["tx_hash"])) for row in rows]
