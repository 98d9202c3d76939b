"""Contracts and transfers in a segment: rows of jettons and NFTs by the addresses in them.

``<table>.data`` has the rows, each a MessagePack array of its columns, and ``<table>.at`` their
offsets. ``<table>.order`` has the sort key of each row. ``<table>.<column>`` are postings by
address in that order; transfers also have postings by ``now`` and ``lt``. Postings of contracts by
an address other than the account are unordered, and have only the first row of each account with
that address. Addresses and code hashes repeat: rows refer to them by number in ``contract.hash``,
which has each once. If an earlier row of the table has the same content, the content is the number
of that row. A table without rows has no arrays.
"""

from __future__ import annotations

from array import array
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.lake.file.values import iter_tuples
from tonlake.lake.index.segment.postings import Postings, cut_hash, write_postings
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from tonlake.lake.index.segment.file import SegmentWriter

Row = dict[str, Any]

HASHES = "contract.hash"

_HASH_BYTES = 32
_REMEMBERED = 500_000
"""Most hashes remembered while a segment is written: about 100 MB."""

_REMEMBERED_TEXTS = 10_000
_MAX_INT = (1 << 63) - 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(type=list[Any]).decode


class Indexed(NamedTuple):
    """A table in segments: the columns whose addresses are indexed, and its sort key."""

    name: str
    addresses: tuple[str, ...]
    order: str

    @property
    def moments(self) -> tuple[str, ...]:
        """Names of the time columns, if ranges of time can be queried."""
        return ("now", "lt") if self.order == "lt" else ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return TABLES[self.name].names

    def places_of(self, *types: str) -> tuple[int, ...]:
        """Return the positions of the columns of some types."""
        columns = enumerate(TABLES[self.name].columns)
        return tuple(at for at, column in columns if column.type in types)


INDEXED: dict[str, Indexed] = {
    table.name: table
    for table in (
        Indexed("jetton_masters", ("account", "admin"), "mc_seqno"),
        Indexed("jetton_wallets", ("account", "owner", "jetton"), "mc_seqno"),
        Indexed("nft_collections", ("account", "owner"), "mc_seqno"),
        Indexed("nft_items", ("account", "collection", "owner"), "mc_seqno"),
        Indexed("nft_sales", ("account", "nft_owner"), "mc_seqno"),
        Indexed("dns_records", ("account", "wallet"), "mc_seqno"),
        Indexed("multisig_wallets", ("account",), "mc_seqno"),
        Indexed("multisig_orders", ("account", "multisig"), "mc_seqno"),
        Indexed("vesting_contracts", ("account",), "mc_seqno"),
        Indexed("jetton_transfers", ("account", "jetton", "source", "destination"), "lt"),
        Indexed("jetton_burns", ("account", "jetton", "owner"), "lt"),
        Indexed("nft_transfers", ("account", "collection", "old_owner", "new_owner"), "lt"),
    )
}

_UNIQUE = frozenset({"data_hash", "tx_hash"})
"""Hashes that hardly ever repeat."""

_REPEATED = "content"

_NO_WORKCHAIN = -(1 << 31)
"""Stands for NULL; no workchain has this number: nodes define it as invalid."""


def workchain_of(column: str) -> str:
    """Return the name of the workchain column of an address column."""
    return "workchain" if column == "account" else f"{column}_workchain"


def write_contracts(writer: SegmentWriter, parts: Iterable[tuple[str, pa.Table]]) -> None:
    """Write rows that come in parts by table; parts of one table are adjacent."""
    pool = _Pool()
    for name, tables in groupby(parts, key=itemgetter(0)):
        _TableWriter(writer, INDEXED[name], pool).write(table for _, table in tables)
    writer.add(HASHES, pool.bytes)


class _Pool:
    """Hashes that rows refer to by number."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._numbers: dict[bytes, int] = {}

    def number_of(self, value: bytes) -> int:
        number = self._numbers.get(value)
        if number is None:
            if len(self._numbers) >= _REMEMBERED:
                self._numbers.clear()
            number = self._numbers[value] = len(self.bytes) // _HASH_BYTES
            self.bytes += value
        return number


class _TableWriter:
    """Writes the arrays of one table."""

    def __init__(self, writer: SegmentWriter, table: Indexed, pool: _Pool) -> None:
        self._writer, self._table, self._pool = writer, table, pool
        names = table.columns
        self._pooled = [at for at in table.places_of("hash") if names[at] not in _UNIQUE]
        self._amounts = table.places_of("amount")
        self._content = names.index(_REPEATED) if _REPEATED in names else None
        self._contents: dict[str, int] = {}
        self._at, self._order = array("q", [0]), array("q")
        self._keys = {name: (array("Q"), array("I")) for name in table.addresses}
        self._addresses = {name: array("Q") for name in table.addresses if not table.moments}
        self._moments = {names.index(name): array("Q") for name in table.moments}

    def write(self, tables: Iterable[pa.Table]) -> None:
        writer, name = self._writer, self._table.name
        writer.begin(f"{name}.data")
        for table in tables:
            for values in iter_tuples(table, self._table.columns):
                self._add(list(values))
        writer.add_numbers(f"{name}.at", self._at)
        writer.add_numbers(f"{name}.order", self._order)
        for column, (keys, rows) in self._keys.items():
            order = array("q", map(self._order.__getitem__, rows))
            found: dict[str, array[int]] = {"key": keys}
            unique: tuple[str, ...] = ("row",)
            if self._addresses and column != "account":
                accounts = map(self._addresses["account"].__getitem__, rows)
                found |= {"address": self._addresses[column], "account": array("Q", accounts)}
                unique = "address", "account"
            found |= {"order": order, "row": rows}
            write_postings(writer, f"{name}.{column}", found, unique, hashed=True)
        for at, keys in self._moments.items():
            found = {"key": keys, "order": self._order, "row": array("I", range(len(keys)))}
            write_postings(writer, f"{name}.{self._table.columns[at]}", found)

    def _add(self, values: list[Any]) -> None:
        number, names = len(self._order), self._table.columns
        for column, (keys, rows) in self._keys.items():
            address = values[names.index(column)]
            if address is not None:
                keys.append(cut_hash(address))
                rows.append(number)
        self._order.append(values[names.index(self._table.order)])
        for at, moments in self._moments.items():
            moments.append(max(0, values[at]))  # no block is older than 1970
        for at in self._pooled:
            if values[at] is not None:
                values[at] = self._pool.number_of(values[at])
        self._add_addresses(values)
        for at in self._amounts:
            if values[at] is not None:
                values[at] = _write_amount(int(values[at]))
        if self._content is not None and values[self._content] is not None:
            values[self._content] = self._shorten(values[self._content], number)
        data = _encode(values)
        self._writer.write(data)
        self._at.append(self._at[-1] + len(data))

    def _add_addresses(self, values: list[Any]) -> None:
        """Combine each address into one number, of its hash in the pool and its workchain."""
        names = self._table.columns
        for column, addresses in self._addresses.items():
            address = values[names.index(column)]
            if address is not None:
                workchain = values[names.index(workchain_of(column))]
                number = _NO_WORKCHAIN if workchain is None else workchain
                addresses.append(address << 32 | number & 0xFFFFFFFF)

    def _shorten(self, text: str, number: int) -> str | int:
        """Return the number of an earlier row with the same content, or the text itself."""
        if len(self._contents) >= _REMEMBERED_TEXTS:
            self._contents.clear()
        earlier = self._contents.setdefault(text, number)
        return text if earlier == number else earlier


def _write_amount(amount: int) -> int | str:
    return amount if -_MAX_INT <= amount <= _MAX_INT else str(amount)


class SegmentTable:
    """The rows of one table of an open segment."""

    def __init__(self, arrays: Mapping[str, Any], table: Indexed) -> None:
        """Take the arrays of an open segment.

        Raises:
            KeyError: an array is missing.
        """
        self.order = arrays[f"{table.name}.order"]
        self.postings = {
            column: Postings(arrays, f"{table.name}.{column}") for column in table.addresses
        }
        self.moments = {
            column: Postings(arrays, f"{table.name}.{column}") for column in table.moments
        }
        self._data, self._at = arrays[f"{table.name}.data"], arrays[f"{table.name}.at"]
        self._hashes = arrays[HASHES]
        self._names = table.columns
        self._pooled, self._amounts = table.places_of("hash"), table.places_of("amount")
        self._content = self._names.index(_REPEATED) if _REPEATED in self._names else None

    def read(self, number: int) -> Row:
        """Return a row by its number."""
        values = _decode(self._data[self._at[number] : self._at[number + 1]])
        for at in self._pooled:
            if type(values[at]) is int:
                start = values[at] * _HASH_BYTES
                values[at] = bytes(self._hashes[start : start + _HASH_BYTES])
        for at in self._amounts:
            if values[at] is not None:
                values[at] = int(values[at])
        if self._content is not None and type(values[self._content]) is int:
            earlier = values[self._content]
            text = _decode(self._data[self._at[earlier] : self._at[earlier + 1]])
            values[self._content] = text[self._content]
        return dict(zip(self._names, values, strict=True))

    def list_rows(self, column: str, address: bytes) -> list[int]:
        """Return the numbers of rows that may have an address in a column, in order.

        The rows of other addresses with the same prefix are included.
        """
        return self.postings[column].list_rows(cut_hash(address))


def open_tables(arrays: Mapping[str, Any]) -> dict[str, SegmentTable] | None:
    """Return the tables of an open segment that have rows; None if it was built without tables.

    Raises:
        KeyError: an array is missing.
    """
    if HASHES not in arrays:
        return None
    present = (table for table in INDEXED.values() if f"{table.name}.at" in arrays)
    return {table.name: SegmentTable(arrays, table) for table in present}
