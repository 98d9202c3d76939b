"""Composes a segment from the rows of one range of masterchain blocks, account by account.

Rows come in parts, each with all rows of its accounts, with accounts ascending from part to part.
A range of any size is composed in the memory of one part and of the key arrays.
"""

from __future__ import annotations

from array import array
from typing import IO, TYPE_CHECKING

import pyarrow.compute as pc

from tonlake.lake.index.builder.gather import SOURCES
from tonlake.lake.index.segment.contracts import write_contracts
from tonlake.lake.index.segment.file import SegmentWriter
from tonlake.lake.index.segment.places import write_places
from tonlake.lake.index.segment.postings import write_keys, write_postings
from tonlake.lake.index.segment.shape import encode_shapes, open_composer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from tonlake.lake.index.builder.gather import Source
    from tonlake.lake.log.ranges import Range

_OF_ROWS = ("record.at", "hash", "hash_after", "lt", "now", "mc_seqno")
_OF_ACCOUNTS = ("account.id", "account.row", "state.at", "state", "balance", "richest")
_OF_TRACES = ("root", "parent", "other")
_ENDED = ("ended.at", "ended.data")
_OF_MESSAGES = ("wait",)
_UNITS = ("lt", "utime")

_BY_TIME = ("key", "lt", "row")
_BY_CREATION = ("key", "created", "hash", "check", "is_source", "row", "place")
_ONCE = ("created", "hash", "check")


def compose(stream: IO[bytes], source: Source, parts: Iterable[Mapping[str, pa.Table]]) -> int:
    """Write the segment of a source's range, and return the number of transactions.

    ``parts`` are the base rows of the source.
    """
    composer = Composer(stream)
    for part in parts:
        composer.add_part(part)
    return composer.finish(
        source.mc_range, source.read_ended(), source.read_contracts(), source.read_places()
    )


class Composer:
    """Writes one segment: call ``add_part`` for every part, then ``finish``."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Begin the file with the records, as they are most of it."""
        self._writer = SegmentWriter(stream)
        self._writer.begin("records")
        self._rows = open_composer()

    def add_part(self, tables: Mapping[str, pa.Table]) -> None:
        """Add transactions, messages and account states; accounts come after those added before."""
        self._writer.write(self._rows.add_part(*(tables[name] for name in SOURCES)))

    def finish(
        self,
        mc_range: Range,
        ended: pa.Table,
        contracts: Iterable[tuple[str, pa.Table]] = (),
        places: Iterable[tuple[str, pa.Table]] = (),
    ) -> int:
        """Write all arrays, and return the number of transactions.

        ``ended`` are the complete traces that end in the range, ``contracts`` rows of contracts and
        transfers, in parts with the name of their table, and ``places`` likewise rows that are
        found by hash.
        """
        self._rows.end(ended)
        writer, rows = self._writer, len(self._rows.copy("lt"))
        self._write(*_OF_ROWS, *_OF_ACCOUNTS)
        write_keys(writer, "account.key", self._rows.copy("account.key"))
        self._write_postings("transaction", ("key", "row"), hashed=True)
        self._write_postings("block", _BY_TIME)
        self._write_postings("failed", _BY_TIME)
        self._write_postings("message", ("key", "row"), hashed=True)
        self._write_postings("opcode", _BY_CREATION, _ONCE)
        self._write_postings("body", _BY_CREATION, _ONCE, hashed=True, apart=True)
        self._write_postings("opcode_again", _BY_CREATION)
        self._write_postings("body_again", _BY_CREATION, hashed=True, apart=True)
        self._write_postings("alone_to", _BY_CREATION, _ONCE, hashed=True, apart=True)
        self._write_postings("alone_from", _BY_CREATION, _ONCE, hashed=True, apart=True)
        self._write_postings("alone_lt", _BY_CREATION, _ONCE)
        self._write_postings("alone_now", _BY_CREATION, _ONCE)
        self._write(*_OF_MESSAGES)
        self._write(*_OF_TRACES)
        self._write_postings("trace", _BY_TIME, hashed=True)
        write_keys(writer, "ended.key", self._rows.copy("ended.key"))
        self._write(*_ENDED)
        writer.add_numbers("ended.longest", array("q", (_find_longest(ended, u) for u in _UNITS)))
        writer.add("shape", encode_shapes(self._rows))
        write_contracts(writer, contracts)
        write_places(writer, places)
        writer.finish(mc_range, rows)
        return rows

    def _write(self, *names: str) -> None:
        """Write arrays of numbers or bytes by name."""
        for name in names:
            array = self._rows.copy(name)
            add = self._writer.add if array.format == "B" else self._writer.add_numbers
            add(name, array)

    def _write_postings(
        self,
        name: str,
        columns: tuple[str, ...],
        unique: tuple[str, ...] = ("row",),
        *,
        hashed: bool = False,
        apart: bool = False,
    ) -> None:
        found = dict(zip(columns, self._rows.postings(name), strict=True))
        write_postings(self._writer, name, found, unique, hashed=hashed, apart=apart)


def _find_longest(traces: pa.Table, unit: str) -> int:
    """Return the longest duration of a trace, in logical time or Unix seconds."""
    spans = pc.subtract(traces[f"end_{unit}"], traces[f"start_{unit}"])
    return max(0, pc.max(spans).as_py() or 0)
