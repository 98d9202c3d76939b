"""Plain Python reference for a segment's contracts and moves, compared with the extension's."""

from __future__ import annotations

from array import array
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tests.lake.index.reference.postings import cut_hash, write_postings
from tonlake.lake.index.segment.contracts import INDEXED, workchain_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tonlake.lake.index.segment.contracts import Indexed
    from tonlake.lake.index.segment.file import SegmentWriter

_HASH_BYTES = 32
_MAX_INT = (1 << 63) - 1
_UNIQUE = frozenset({"data_hash", "tx_hash"})
_REPEATED = "content"
_encode = msgspec.msgpack.Encoder().encode


def write_contracts(
    writer: SegmentWriter,
    parts: Iterable[tuple[str, pa.Table]],
    max_remembered: int = 500_000,
    max_texts: int = 10_000,
) -> None:
    """Write rows that come in parts by table, those of one table together."""
    pool = _Pool(max_remembered)
    for name, tables in groupby(parts, key=itemgetter(0)):
        made = _TableWriter(writer, INDEXED[name], pool, max_texts)
        made.write(table for _, table in tables)
    writer.add("contract.hash", pool.bytes)


class _Pool:
    """Hashes that rows refer to by number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = bytearray()
        self._numbers: dict[bytes, int] = {}

    def number_of(self, value: bytes) -> int:
        number = self._numbers.get(value)
        if number is None:
            if len(self._numbers) >= self._most:
                self._numbers.clear()
            number = self._numbers[value] = len(self.bytes) // _HASH_BYTES
            self.bytes += value
        return number


class _TableWriter:
    """Writes the arrays of one table."""

    def __init__(self, writer: SegmentWriter, table: Indexed, pool: _Pool, max_texts: int) -> None:
        self._writer, self._table, self._pool = writer, table, pool
        self._max_texts = max_texts
        names = table.columns
        self._pooled = [at for at in table.places_of("hash") if names[at] not in _UNIQUE]
        self._amounts = table.places_of("amount")
        self._content = names.index(_REPEATED) if _REPEATED in names else None
        self._contents: dict[str, int] = {}
        self._at, self._order = array("q", [0]), array("q")
        self._addresses: dict[str, list[int]] = {name: [] for name in table.addresses}
        self._keys = {name: (array("Q"), array("I")) for name in table.addresses}
        self._moments = {names.index(name): array("Q") for name in table.moments}

    def write(self, tables: Iterable[pa.Table]) -> None:
        writer, name = self._writer, self._table.name
        writer.begin(f"{name}.data")
        for table in tables:
            for row in table.to_pylist():
                self._add([row[name] for name in self._table.columns])
        writer.add_numbers(f"{name}.at", self._at)
        writer.add_numbers(f"{name}.order", self._order)
        for column, (keys, rows) in self._keys.items():
            order = [self._order[row] for row in rows]
            columns, unique = ["key", "order", "row"], ["row"]
            found: list[Iterable[int]] = [keys, order, rows]
            if self._table.order == "mc_seqno" and column != "account":
                unique = ["address", "account"]
                columns[1:1] = unique
                found[1:1] = [
                    [self._addresses[name][row] for row in rows] for name in (column, "account")
                ]
            listed = zip(*found, strict=True)
            write_postings(writer, f"{name}.{column}", columns, listed, unique, hashed=True)
        for at, moments in self._moments.items():
            spans = zip(moments, self._order, range(len(moments)), strict=True)
            column = self._table.columns[at]
            write_postings(writer, f"{name}.{column}", ("key", "order", "row"), spans)

    def _add(self, values: list[Any]) -> None:
        number, names = len(self._order), self._table.columns
        for column, (keys, rows) in self._keys.items():
            address = values[names.index(column)]
            if address is not None:
                keys.append(cut_hash(address))
                rows.append(number)
        self._order.append(values[names.index(self._table.order)])
        for at, moments in self._moments.items():
            moments.append(max(0, values[at]))  # no block is from before 1970
        for at in self._pooled:
            if values[at] is not None:
                values[at] = self._pool.number_of(values[at])
        for column, addresses in self._addresses.items():
            workchain = values[names.index(workchain_of(column))] or 0
            addresses.append((values[names.index(column)] or 0) << 32 | workchain & 0xFFFFFFFF)
        for at in self._amounts:
            if values[at] is not None:
                values[at] = _write_amount(int(values[at]))
        if self._content is not None and values[self._content] is not None:
            values[self._content] = self._shorten(values[self._content], number)
        data = _encode(values)
        self._writer.write(data)
        self._at.append(self._at[-1] + len(data))

    def _shorten(self, text: str, number: int) -> str | int:
        """Return the number of an earlier row with the same content, or the text itself."""
        if len(self._contents) >= self._max_texts:
            self._contents.clear()
        earlier = self._contents.setdefault(text, number)
        return text if earlier == number else earlier


def _write_amount(amount: int) -> int | str:
    return amount if -_MAX_INT <= amount <= _MAX_INT else str(amount)
