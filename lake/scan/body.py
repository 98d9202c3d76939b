"""Scans a table defined by a signature: messages, and the decoded fields of their bodies."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import date
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.duck.body_table import MESSAGE_COLUMNS, MISFITS, Misfits, add_table
from tonlake.lake.duck.connection import read_macros
from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.statement import join_scripts, quote_name
from tonlake.lake.log.place import read_place
from tonlake.lake.scan.file import mask_selections
from tonlake.lake.scan.plan import Among, Plan
from tonlake.lake.scan.rows import ROWS_PER_RECORD, Part, RowReader
from tonlake.lake.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from tonlake.lake.duck.body_table import BodyTable
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.scan.file import OpenFiles
    from tonlake.lake.scan.plan import Filter
    from tonlake.lake.scan.rows import Select, SnapshotFiles
    from tonlake.lake.scan.scanner import Newest
    from tonlake.lake.settings import LakeSettings

_WORD = re.compile(r"\w+")
_COLUMNS = tuple(name for name in MESSAGE_COLUMNS if name != "day")
_ORDER = ("mc_seqno", "tx_lt", "tx_workchain", "tx_account", "created_lt")
"""Sort order of messages; with a signature, a transaction has at most one inbound message."""

MAX_READ = 65_536
"""Most transactions whose messages a statement reads through the index; they are held in memory."""

_FILTERED = ("opcode", "direction", "kind", "body")
"""Columns of messages that the view of a signature always reads."""


class BodyViews:
    """A separate database with the views of one scan; for one thread at a time."""

    def __init__(self, settings: LakeSettings) -> None:
        """Open the database, without views yet."""
        self._connection = begin_database(settings)
        self._connection.execute("set async_threads = 1")  # it reads no files; the default is 8
        self._connection.execute(read_macros())
        lock_database(self._connection)
        self._count = 0

    def add(self, table: BodyTable, *, misfits: bool = False) -> BodyView:
        """Return the view of a signature; with ``misfits``, that of bodies that do not fit.

        The layout may have the name of any view in the database.
        """
        self._count += 1
        numbered = table._replace(name=f"scanned_{self._count}")
        return BodyView(self._connection, numbered, misfits=misfits)


class BodyView:
    """The view of a signature, over messages passed to it."""

    def __init__(
        self, connection: DuckDBPyConnection, table: BodyTable, *, misfits: bool = False
    ) -> None:
        """Create the view, without messages yet; no other view's name starts with its name."""
        self._connection, self.has_misfits = connection, misfits
        self._messages, self._read = f"messages of {table.name}", f"messages read of {table.name}"
        self._provide(MESSAGES.arrow.empty_table())
        self._show_messages("*, null::date as day")
        add_table(connection, table, self._messages, Misfits())
        self._name = quote_name(table.name + MISFITS if misfits else table.name)
        self.opcodes = sorted({layout.opcode for layout in table.layouts})
        fields = {field.name.lower() for layout in table.layouts for field in layout.fields}
        taken = frozenset() if misfits else fields
        self._named = {name: f"message_{name}" if name in taken else name for name in _COLUMNS}
        found = self._ask(f"from {self._name} limit 0")
        self.schema = pa.schema([field for field in found.schema if field.name != "day"])
        self.height = self._named["mc_seqno"]

    def find_message_column(self, name: str) -> str | None:
        """Return the name in ``MESSAGE_COLUMNS`` of a column; None if it is a field."""
        return next((own for own, shown in self._named.items() if shown == name), None)

    def narrow(self, columns: Sequence[str]) -> None:
        """Expect messages with only these columns, which must suffice for all reads."""
        found = self._connection.table(quote_name(self._messages))
        shown = ", ".join(
            quote_name(name) if name in columns else f"null::{kind} as {quote_name(name)}"
            for name, kind in zip(found.columns, found.types, strict=True)
        )
        self._show_messages(shown)

    def read(self, messages: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return columns of the messages that belong to the view, in the order of messages."""
        self._provide(messages)
        order = ", ".join(quote_name(self._named[name]) for name in _ORDER)
        chosen = ", ".join(map(quote_name, columns))
        text = f"select {chosen} from {self._name} order by {order} nulls first"  # noqa: S608 - quoted
        return self._ask(text)

    def _ask(self, text: str) -> pa.Table:
        return self._connection.sql(join_scripts([text])).to_arrow_table()

    def _show_messages(self, columns: str) -> None:
        shown, read = quote_name(self._messages), quote_name(self._read)
        text = f"create or replace view {shown} as select {columns} from {read}"  # noqa: S608 - quoted
        self._connection.execute(join_scripts([text]))

    def _provide(self, messages: pa.Table) -> None:
        self._connection.register(self._read, messages)


def list_message_columns(view_columns: Sequence[str]) -> list[str]:
    """Return the columns of messages that the given columns of the view are computed from."""
    texts = [MESSAGE_COLUMNS[name] for name in view_columns]
    needed = {word for text in texts for word in _WORD.findall(text)}
    needed |= {*_ORDER, *_FILTERED}
    return [name for name in MESSAGES.names if name in needed]


def read_messages(newest: Newest, table: BodyTable) -> pa.Table | None:
    """Return the messages with the opcodes of a signature; None if the index finds too many.

    They have the columns that the view of a signature reads, including ``day``.
    """
    snapshot = newest.snapshot
    names = list_message_columns(_COLUMNS)
    most = sum(file.rows for file in snapshot.files[MESSAGES.name]) // ROWS_PER_RECORD
    selections = ((_choose_opcodes(layout.opcode for layout in table.layouts),),)
    span = 0, snapshot.last_mc_seqno
    found = newest.select(MESSAGES, names, selections, span, min(most, MAX_READ))
    if found is None:
        return None
    schema = pa.schema([MESSAGES.arrow.field(name) for name in names])
    parts = [rows.filter(mask_selections(rows, selections)) for rows, _height in found]
    rows = pa.concat_tables([schema.empty_table(), *parts])
    places = sorted(
        (place.first, place.last, date.fromisoformat(place.day))
        for place in (read_place(file.path) for file in snapshot.files[MESSAGES.name])
    )
    days = [
        places[bisect_right(places, seqno, key=itemgetter(0)) - 1][2]
        for seqno in rows["mc_seqno"].to_pylist()
    ]
    return rows.append_column("day", pa.array(days, pa.date32()))


class BodyFilter(NamedTuple):
    """A filter on a column of the view; ``early`` is an equivalent filter on messages, if any.

    Bodies of messages that the early filters exclude are not decoded.
    """

    own: Among
    early: Filter | None = None


class BodyRows:
    """Rows of a table defined by a signature that pass all filters of one of the lists."""

    def __init__(
        self,
        name: str,
        view: BodyView,
        columns: tuple[str, ...],
        selections: Sequence[Sequence[BodyFilter]],
    ) -> None:
        """Take columns of the view, and the name under which misfits are counted."""
        self._view, self.columns, self.height = view, columns, view.height
        self._name, self._misfits = name, 0
        self.schema = pa.schema([view.schema.field(name) for name in columns])
        needed = dict.fromkeys((*columns, self.height))
        self.held_schema = pa.schema([view.schema.field(name) for name in needed])
        self._late = [[one.own for one in each] for each in selections]
        needed |= dict.fromkeys(one.column for own in self._late for one in own)
        self._needed = list(needed)
        known = map(view.find_message_column, needed)
        own = tuple(list_message_columns([name for name in known if name]))
        view.narrow(own)
        self._plan = Plan(MESSAGES, own, _choose_messages(view, selections))

    def read(
        self, source: SnapshotFiles, files: OpenFiles, select: Select, span: Range
    ) -> Iterator[Part]:
        """Yield the rows, as ``RowSource.read``."""
        for part in RowReader(source, self._plan, files, select).read(span):
            yield Part(self._decode(part.rows), part.height)

    def take_misfits(self) -> dict[str, int]:
        """Return the number of bodies that did not fit, as ``RowSource.take_misfits``."""
        found, self._misfits = self._misfits, 0
        return {self._name: found} if found else {}

    def _decode(self, messages: pa.Table) -> pa.Table:
        if not messages.num_rows:
            return self.held_schema.empty_table()
        rows = self._view.read(messages, self._needed)
        if not self._view.has_misfits:
            self._misfits += _count_delivered(messages) - rows.num_rows
        if self._late:
            rows = rows.filter(mask_selections(rows, self._late))
        return rows.select(self.held_schema.names).cast(self.held_schema)


def _count_delivered(messages: pa.Table) -> int:
    """Return the number of rows that the view of a body shows: one per message."""
    is_in, is_last = pc.equal(messages["direction"], "in"), pc.equal(messages["kind"], "ext_out")
    return pc.sum(pc.or_(is_in, is_last)).as_py() or 0


def _choose_messages(
    view: BodyView, selections: Sequence[Sequence[BodyFilter]]
) -> tuple[tuple[Filter, ...], ...]:
    """Return the filters that apply to messages before their bodies are decoded."""
    is_named = _choose_opcodes(view.opcodes)
    early = [[one.early for one in each if one.early is not None] for each in selections or [[]]]
    return tuple((is_named, *each) for each in early)


def _choose_opcodes(opcodes: Iterable[int]) -> Among:
    """Return the filter of messages with one of ``opcodes``."""
    signed = sorted({code - (1 << 32) if code >> 31 else code for code in opcodes})
    return Among("opcode", pa.array(signed, pa.int32()))
