"""Composes a segment from the rows of one range of masterchain blocks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import list_values, read_rows, without_collector
from tonlake.lake.index.builder.relative import list_facts, omit_derived, relate
from tonlake.lake.index.segment.declared import (
    ABSENT,
    ACCOUNT_STATES,
    ACCOUNTS,
    ACTION_ACCOUNTS,
    INDEXED,
    LT,
    MESSAGE_COLUMNS,
    MESSAGES,
    NO_LT,
    STATE_COLUMNS,
    TRANSACTIONS,
    UTIME,
    Indexed,
    workchain_of,
)
from tonlake.lake.index.segment.file import SegmentWriter
from tonlake.lake.index.segment.rows import (
    AT_ONCE,
    HASHES,
    OF_BAG,
    OF_BAG_MESSAGE,
    Pool,
    encode_rows,
    list_columns,
    list_known,
    write_bags,
    write_rows,
)
from tonlake.lake.index.segment.segment import (
    CODE_ABSENT,
    CODE_FIRST,
    CODE_UNKNOWN,
    Numbers,
    list_keys,
    write_postings,
)
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import TABLES
from tonlake.lake.system import return_memory

SOURCES = frozenset({*INDEXED, "transaction_traces"})
"""Tables that segments are built from."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "transactions": tuple(name for name in TABLES["transactions"].names if name != "time"),
    "messages": ("tx_hash", "mc_seqno", *MESSAGE_COLUMNS),
    "account_states": ("workchain", "account", "block_seqno", *STATE_COLUMNS),
    "transaction_traces": ("hash", "mc_seqno", "trace_id", "parent_hash"),
}
"""The columns that are read, if not all."""

_MANY = 200_000
"""Rows of a source from which on free memory is returned before each table: it may be half."""

Read = Callable[..., pa.Table]
"""Reads columns of a file, or all, like ``read_rows``."""


class SegmentSource(NamedTuple):
    """Files that may have rows of a range of blocks; a zero state belongs to block 1."""

    lake_dir: Path
    files: Sequence[DataFile]
    mc_range: Range
    read: Read = read_rows

    def read_table(self, name: str) -> pa.Table:
        """Return the rows of a table; of traces, those that end in the range."""
        if sum(file.rows for file in self.files) > _MANY:
            return_memory()
        found = [self._read_file(file) for file in self.files if file.table == name]
        return pa.concat_tables(found) if found else _make_empty(name)

    def _read_file(self, file: DataFile) -> pa.Table:
        rows = self.read(self.lake_dir, file, _COLUMNS.get(file.table))
        place, (first, last) = read_place(file.path), self.mc_range
        if first <= place.first and place.last <= last:
            return rows
        seqnos = rows[TABLES[file.table].height]
        lowest = 0 if first == 1 else first
        return rows.filter(pc.and_(pc.greater_equal(seqnos, lowest), pc.less_equal(seqnos, last)))


@lru_cache
def _make_empty(name: str) -> pa.Table:
    """Return no rows of a table: most tables have none in a small commit."""
    fields = TABLES[name].arrow
    columns = _COLUMNS.get(name, fields.names)
    return pa.schema([fields.field(column) for column in columns]).empty_table()


_ARROW = {LT: pa.int64(), UTIME: pa.uint32()}
_SPECIAL = frozenset({TRANSACTIONS.name, MESSAGES.name, ACCOUNT_STATES.name, ACTION_ACCOUNTS.name})


@without_collector()
def compose(stream: IO[bytes], source: SegmentSource, *, packed: bool = True) -> int:
    """Write the segment of a source, compressed if ``packed``; return its transactions' number."""
    composer = _Composer(source, packed=packed)
    transactions = composer.add_chain()
    composer.add_others()
    composer.finish(stream)
    return transactions


def sort_rows(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return rows in order; NULL comes last, and rows of equal keys stay in their order."""
    return rows.take(_sort(rows, names)) if rows.num_rows > 1 else rows


def _sort(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """Return the order of rows by columns, those of equal keys in their order."""
    return pc.sort_indices(rows, [(name, "ascending") for name in names])


def _write_table(writer: SegmentWriter, table: Indexed, rows: pa.Table) -> None:
    """Write the arrays of a table, whose rows are in order."""
    name = table.name
    for column in (*table.hashes, *table.keys):
        values, places = rows[column].combine_chunks(), np.arange(rows.num_rows)
        if table.once and column != "account":
            places = _find_first(rows, column)
            values = values.take(places)
        write_postings(writer, f"{name}.{column}", values, places)
    for column, code in table.numbers.items():
        _write_numbers(writer, f"{name}.{column}", rows[column].combine_chunks(), code)
    for order in table.orders:
        places = pc.cast(_sort(rows, order), pa.uint32())
        writer.add(f"{name}.by_{order[0]}", places)
    if name == "traces":
        writer.add("trace.longest", pa.array(_find_longest(rows), pa.int64()))


@lru_cache
def _list_empty(name: str) -> dict[str, pa.Array]:
    """Return the arrays of a table without rows."""
    writer = SegmentWriter()
    _write_table(writer, INDEXED[name], _make_empty(name))
    return writer.arrays


def _write_numbers(writer: SegmentWriter, name: str, values: pa.Array, code: str) -> None:
    """Write numbers of a type, or of a wider one if they need it."""
    numbers = np.maximum(values.fill_null(0).to_numpy(), 0)  # no block is older than 1970
    if numbers.max(initial=0) >= ABSENT[code]:
        code = LT
    if values.null_count:
        numbers[values.is_null().to_numpy(zero_copy_only=False)] = ABSENT[code]
    writer.add(name, pa.array(numbers, _ARROW[code]))


class _Composer:
    """The arrays and rows of one segment."""

    def __init__(self, source: SegmentSource, *, packed: bool) -> None:
        self._source, self._writer, self._packed = source, SegmentWriter(), packed
        self._rows: dict[str, list[bytes]] = {}
        self._pool = Pool()

    def finish(self, stream: IO[bytes]) -> None:
        self._writer.add(HASHES, self._pool.values)
        write_rows(self._writer, self._rows, packed=self._packed)
        self._writer.write(stream, self._source.mc_range)

    def add_others(self) -> None:
        """Add the tables that do not depend on others."""
        tables = [table for table in INDEXED.values() if table.name not in _SPECIAL]
        rows = [sort_rows(self._source.read_table(table.name), table.sort) for table in tables]
        pairs = [*zip(tables, rows, strict=True)]
        held = [each.select(list(table.copied)) for table, each in pairs if each.num_rows]
        numbered = iter(self._pool.number(held))
        for table, each in pairs:
            copies = _encode(table, next(numbered)) if each.num_rows else []
            self._add_table(table, each, copies)

    def _add_table(self, table: Indexed, rows: pa.Table, copies: list[bytes]) -> None:
        """Add the rows of a table, which are in order, and their copies."""
        self._rows[table.name] = copies
        if rows.num_rows:
            _write_table(self._writer, table, rows)
        else:
            self._writer.arrays |= _list_empty(table.name)

    def add_chain(self) -> int:
        """Add transactions, messages and states of accounts, and the actions of accounts."""
        rows = self._source.read_table(TRANSACTIONS.name)
        # Bags are much of the memory: they are one array, released early. Each take from a column
        # of several would join them all: a quarter of the CPU of a segment of 22,000.
        bags = rows["boc"].cast(pa.large_binary()).combine_chunks()
        order = _sort(rows, TRANSACTIONS.sort)
        rows = rows.select(["hash", *(each for each in rows.column_names if each not in _APART)])
        rows, bags = rows.take(order), bags.take(order)
        messages = self._order_messages(rows)
        self._add_bags(bags, rows, messages)
        del bags
        states = sort_rows(self._source.read_table(ACCOUNT_STATES.name), ACCOUNT_STATES.sort)
        actions = sort_rows(self._source.read_table(ACTION_ACCOUNTS.name), ACTION_ACCOUNTS.sort)
        traces = self._order_traces(rows)
        numbered = self._number([rows, messages, states, actions, traces])
        rows, messages = rows.select(_OF_ROWS), messages.select(_OF_MESSAGES)
        accounts = self._add_accounts(numbered[0], numbered[2], numbered[3])
        self._writer.add("transactions.account", accounts[0])
        after = pc.cast(numbered[0]["account_state_hash_after"], pa.uint32())
        self._writer.add("transactions.state", after)
        newest = _find_ends(accounts[1])
        held = states.take(newest)
        del states
        self._rank(held, accounts[1].take(newest))
        self._add_codes(accounts, newest, numbered[2]["code_hash"])
        copies = _encode(ACCOUNT_STATES, numbered[2].take(newest))
        self._add_table(ACCOUNT_STATES, held, copies)
        self._add_table(ACTION_ACCOUNTS, actions, _encode(ACTION_ACCOUNTS, numbered[3]))
        around = _find_states(numbered[0], accounts[0], numbered[2], accounts[1])
        given = omit_derived(numbered[0], numbered[1])
        copies = self._add_messages(messages, given, numbered[1], numbered[2], around)
        self._add_table(TRANSACTIONS, rows, copies)
        hashes = rows["hash"].combine_chunks()
        write_postings(self._writer, "transactions.hash", hashes, np.arange(rows.num_rows))
        self._add_traces(traces, numbered[4])
        self._add_blocks(rows)
        count: int = rows.num_rows
        return count

    def _number(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """Return tables with numbers; those of the new values of a transaction are adjacent.

        The hashes of transactions come first, so their numbers are those of the rows.
        """
        rows, messages, states = tables[:3]
        hashes, line = rows["hash"].combine_chunks(), messages["row"].to_numpy()
        places = np.arange(len(line)) - np.searchsorted(line, line)
        own = pc.index_in(states["last_trans_hash"], value_set=hashes)
        owners = (np.arange(len(hashes)), line, pc.fill_null(own, len(hashes)).to_numpy())
        keys = [
            (owners[table].astype(np.int64) << _ROW_SHIFT)
            + (len(_NEW) * (1 + places) + at if tables[table] is messages else at)
            for at, (table, _) in enumerate(_NEW)
        ]
        new = [chunk for table, name in _NEW for chunk in tables[table][name].chunks]
        order = pa.array(np.argsort(np.concatenate(keys), kind="stable"))
        often = [chunk for table, name in _OFTEN for chunk in tables[table][name].chunks]
        return self._pool.number(tables, [hashes, *often, pa.concat_arrays(new).take(order)])

    def _add_bags(self, bags: pa.Array, rows: pa.Table, messages: pa.Table) -> None:
        """Add the bags of rows by account, without what they are likely to have of the rows."""
        owners = messages["row"].to_numpy()

        def know(places: pa.Array) -> Iterator[list[bytes]]:
            at = places.to_numpy()
            starts, ends = owners.searchsorted(at), owners.searchsorted(at, "right")
            lines = pa.array([*chain.from_iterable(map(range, starts, ends))], pa.int64())
            own = {name: list_values(rows[name].take(places)) for name, _ in OF_BAG}
            others = {name: list_values(messages[name].take(lines)) for name, _ in OF_BAG_MESSAGE}
            return list_known(own, others, (ends - starts).tolist())

        order = _sort(rows, ("account", "workchain"))
        write_bags(self._writer, bags, order, know, packed=self._packed)

    def _add_accounts(self, *tables: pa.Table) -> list[pa.Array]:
        """Add the accounts of tables with numbers; return the number of each row's account.

        All tables but the first are in the order of accounts: by id, then workchain.
        """
        keys = [_pair(table["account"], table["workchain"]) for table in tables]
        encoded = pa.concat_arrays(keys).dictionary_encode()
        every = encoded.dictionary
        ids = pc.cast(pc.shift_right(every, 32), pa.uint32())
        workchains = pc.cast(pc.add(pc.bit_wise_and(every, _LOW), _LEAST), pa.int32())
        accounts = pa.table([self._pool.values.take(ids), workchains], ["account", "workchain"])
        order = pc.sort_indices(accounts, [("account", "ascending"), ("workchain", "ascending")])
        ranks = pc.cast(pc.sort_indices(order), pa.uint32())
        stops = [0, *accumulate(map(len, keys))]
        listed = ranks.take(encoded.indices)
        numbers = [listed[first:stop] for first, stop in pairwise(stops)]
        values = accounts["account"].take(order).combine_chunks()
        self._writer.add("account.key", pa.array(list_keys(values)))
        self._writer.add("account.workchain", workchains.take(order))
        self._writer.add("account.hash", ids.take(order))
        self._writer.add("account.transaction", pc.cast(pc.sort_indices(numbers[0]), pa.uint32()))
        owners = (numbers[0], numbers[1].take(_find_ends(numbers[1])), numbers[2])
        for name, owner in zip(ACCOUNTS, owners, strict=True):
            ends = np.bincount(owner, minlength=len(every)).cumsum()
            self._writer.add(f"account.{name}", pa.array(ends, pa.uint32()))
        return numbers

    def _add_codes(
        self, accounts: Sequence[pa.Array], newest: pa.Array, codes: pa.ChunkedArray
    ) -> None:
        """Add the number of the newest code hash of each account, given those of all states."""
        numbers = pa.array(np.arange(len(pc.unique(pa.concat_arrays(accounts)))), pa.uint32())
        at = newest.take(pc.index_in(numbers, value_set=accounts[1].take(newest)))
        own = pc.fill_null(pc.add(codes, CODE_FIRST), CODE_ABSENT).take(at)
        self._writer.add("account.code", pc.cast(pc.fill_null(own, CODE_UNKNOWN), pa.uint32()))

    def _order_messages(self, rows: pa.Table) -> pa.Table:
        """Return the messages of transactions in their order, each with its ``row``."""
        messages = self._source.read_table(MESSAGES.name)
        at = pc.index_in(messages["tx_hash"], value_set=rows["hash"].combine_chunks())
        messages = messages.select(list(MESSAGE_COLUMNS)).append_column("row", at)
        order = _sort(messages, ("row", "direction", "msg_index"))
        return messages.take(order[: len(at) - at.null_count])

    def _add_messages(
        self,
        messages: pa.Table,
        rows: pa.Table,
        numbered: pa.Table,
        states: pa.Table,
        around: Sequence[pa.Array],
    ) -> list[bytes]:
        """Add messages; return copies of transactions with them and the states at ``around``."""
        owners = numbered["row"].to_numpy()
        ends = np.searchsorted(owners, np.arange(rows.num_rows + 1)).tolist()
        contents, copies = array("q"), list[bytes]()
        related = relate(numbered, rows)
        for start in range(0, rows.num_rows, AT_ONCE):
            stop = min(start + AT_ONCE, rows.num_rows)
            first, count = ends[start], ends[stop] - ends[start]
            columns = list_columns(numbered.slice(first, count), MESSAGE_COLUMNS)
            contents.extend(map(hash, zip(*columns[_CONTENT_AT:], strict=True)))
            for name, values in related.items():
                columns[MESSAGE_COLUMNS.index(name)] = values.slice(first, count).to_pylist()
            lines = list(zip(*columns, strict=True))
            nested = [
                lines[ends[row] - first : ends[row + 1] - first] for row in range(start, stop)
            ]
            columns = list_columns(rows.slice(start, AT_ONCE), TRANSACTIONS.copied)
            after = rows["account_state_hash_after"].slice(start, AT_ONCE)
            facts = (list_facts(states, each.slice(start, AT_ONCE), after) for each in around)
            copies += encode_rows([*columns, nested, *facts])
        hashes = numbered["msg_hash"].to_numpy()
        self._add_ends(messages, hashes, owners, np.frombuffer(contents, np.int64))
        return copies

    def _add_ends(
        self, rows: pa.Table, hashes: Numbers, owners: Numbers, contents: Numbers
    ) -> None:
        """Add each message once, with the transactions at its ends."""
        filled = pc.fill_null(rows["created_lt"], NO_LT)
        rows = rows.set_column(rows.schema.get_field_index("created_lt"), "created_lt", filled)
        order = _sort(rows, MESSAGES.sort).to_numpy().astype(np.int64)
        is_in = pc.equal(rows["direction"], "in").to_numpy()
        ends = dict(zip(("in", "out"), _unite(order, hashes, contents, is_in), strict=True))
        kept = np.where(ends["in"] < 0, ends["out"], ends["in"])
        self._add_table(MESSAGES, rows.take(pa.array(kept)), [])
        columns = {
            name: np.where(rows_of < 0, 0, owners[rows_of] + 1) for name, rows_of in ends.items()
        }
        places = (np.arange(len(owners)) - np.searchsorted(owners, owners))[kept]
        columns["place"] = np.minimum(places, _LAST_PLACE)
        columns["hash"] = hashes[kept]
        for name, values in columns.items():
            kind = pa.uint8() if name == "place" else pa.uint32()
            self._writer.add(f"messages.{name}", pc.cast(pa.array(values), kind))

    def _rank(self, states: pa.Table, accounts: pa.Array) -> None:
        """Add the newest balances, highest first."""
        columns = {name: states[name] for name in ("balance", "workchain")}
        orders = ("balance", "descending"), ("workchain", "ascending"), ("account", "ascending")
        ranked = pa.table({**columns, "account": accounts}).sort_by(orders)
        self._writer.add("balance", pc.cast(ranked["balance"], pa.int64()))
        self._writer.add("balance.account", ranked["account"])

    def _order_traces(self, rows: pa.Table) -> pa.Table:
        """Return the trace of each transaction, and the transaction that sent its message."""
        traces = self._source.read_table("transaction_traces")
        at = pc.index_in(rows["hash"], value_set=traces["hash"].combine_chunks())
        return traces.select(["trace_id", "parent_hash"]).take(at)

    def _add_traces(self, traces: pa.Table, numbered: pa.Table) -> None:
        for name, column in (("trace", "trace_id"), ("parent", "parent_hash")):
            counted = pc.fill_null(pc.add(numbered[column], 1), 0)
            self._writer.add(f"transactions.{name}", pc.cast(counted, pa.uint32()))
        values = traces["trace_id"].combine_chunks()
        write_postings(self._writer, "transactions.trace_id", values, np.arange(len(values)))

    def _add_blocks(self, rows: pa.Table) -> None:
        """Add the masterchain blocks of transactions, with the moments of each."""
        seqnos, lts, times = (rows[name].to_numpy() for name in ("mc_seqno", "lt", "now"))
        failed = np.flatnonzero(rows["aborted"].to_numpy())
        failed = failed[np.lexsort((lts[failed], times[failed]))]
        self._writer.add("transactions.failed", pa.array(failed, pa.uint32()))
        starts = np.flatnonzero(np.diff(seqnos, prepend=-1))
        self._writer.add("block.mc_seqno", pa.array(seqnos[starts]))
        self._writer.add("block.end", pa.array(np.append(starts, len(seqnos))[1:], pa.uint32()))
        for name, moments in (("lt", lts), ("now", times)):
            for end, choose in (("first", np.minimum), ("last", np.maximum)):
                self._writer.add(f"block.{end}_{name}", pa.array(choose.reduceat(moments, starts)))


def _find_first(rows: pa.Table, column: str) -> Numbers:
    """Return the first row of each account with a value in an address column."""
    names = (column, workchain_of(column), "account", "workchain")
    keys = zip(*(list_values(rows[name]) for name in names), strict=True)
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    return np.fromiter(first.values(), np.int64, len(first))


_CONTENT_AT = MESSAGE_COLUMNS.index("msg_index") + 1
"""Where the columns begin that both ends of a message have."""

_APART = frozenset({"hash", "boc"})
"""Columns that are not sorted with the others."""

_LAST_PLACE = 255
"""Stands for further places of messages: they are looked for from the first one on."""

_OF_ROWS = ["hash", "mc_seqno", "lt", "now", "aborted"]
_OF_MESSAGES = ["direction", *MESSAGES.hashes, *MESSAGES.keys, *MESSAGES.numbers]
"""Columns of transactions and messages that are needed beside those with numbers."""

_NEW = (
    *((0, "account_state_hash_after"), (0, "action_list_hash"), (1, "msg_hash")),
    *((1, "body_hash"), (1, "hash_norm"), (2, "data_hash")),
)
"""Columns of transactions, messages and states whose values are mostly new in each row."""

_OFTEN = ((0, "account"), (1, "source"), (1, "destination"), (2, "code_hash"), (3, "action_id"))
"""Columns whose values occur often: small numbers take fewer bytes."""

_ROW_SHIFT = 32
"""Bits below the row in the key of a value: they hold the place of a message, and of a column."""

_LOW, _LEAST = (1 << 32) - 1, -(1 << 31)


def _encode(table: Indexed, rows: pa.Table) -> list[bytes]:
    """Return the copies of rows with numbers."""
    copies: list[bytes] = []
    for start in range(0, rows.num_rows, AT_ONCE):
        copies += encode_rows(list_columns(rows.slice(start, AT_ONCE), table.copied))
    return copies


def _pair(numbers: pa.ChunkedArray, others: Any) -> pa.Array:  # noqa: ANN401 - an array
    """Return 64-bit keys of a hash by number and another number, as of an account's workchain."""
    high = pc.shift_left(pc.cast(numbers, pa.int64()), 32)
    low = pc.subtract(pc.cast(others, pa.int64()), _LEAST)
    return pc.add(high, low).combine_chunks()


def _find_ends(numbers: pa.Array) -> pa.Array:
    """Return the last row of each number; the numbers are in order."""
    return pc.subtract(pc.run_end_encode(numbers).run_ends, 1)


def _find_states(
    rows: pa.Table, of_row: pa.Array, states: pa.Table, of_state: pa.Array
) -> list[pa.Array]:
    """Return the places of the states before and after each transaction; NULL if unknown."""
    known = _pair(states["hash"], of_state)
    names = ("account_state_hash_before", "account_state_hash_after")
    return [pc.index_in(_pair(rows[name], of_row), value_set=known) for name in names]


_BOTH = 2
"""The rows of a message with both ends in a segment."""


def _unite(
    order: Numbers, hashes: Numbers, contents: Numbers, is_in: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the rows of each message where it was received and sent; -1: none.

    Those of one hash are adjacent in the order. A message that was consumed again is another one,
    and so is one of the same hash with other contents.
    """
    starts = np.flatnonzero(np.diff(hashes[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    first, last = order[starts], order[starts + sizes - 1]
    is_pair = (sizes == _BOTH) & (contents[first] == contents[last]) & (is_in[first] != is_in[last])
    plain, other = np.flatnonzero(is_pair | (sizes == 1)), np.where(is_pair, last, -1)
    received = np.where(is_in[first], first, other)[plain]
    sent = np.where(is_in[first], other, first)[plain]
    more = [
        (at, *own)
        for at in np.flatnonzero(~is_pair & (sizes > 1)).tolist()
        for own in _pair_rows(order[starts[at] : starts[at] + sizes[at]], contents, is_in)
    ]
    groups, *ends = np.array(more, np.int64).reshape(-1, 3).T
    places = np.argsort(np.append(plain, groups), kind="stable")
    return np.append(received, ends[0])[places], np.append(sent, ends[1])[places]


def _pair_rows(rows: Numbers, contents: Numbers, is_in: Numbers) -> Iterator[tuple[int, int]]:
    """Yield the received and the sent row of each message; -1: none."""
    found: dict[int, tuple[list[int], list[int]]] = {}
    for row in rows.tolist():
        received, sent = found.setdefault(int(contents[row]), ([], []))
        (received if is_in[row] else sent).append(row)
    for received, sent in found.values():
        yield from zip_longest(received, sent, fillvalue=-1)


def _find_longest(traces: pa.Table) -> Iterator[int]:
    """Yield the longest durations of a trace, in logical time and Unix seconds."""
    for unit in ("lt", "utime"):
        spans = pc.subtract(traces[f"end_{unit}"], traces[f"start_{unit}"])
        yield max(0, pc.max(spans).as_py() or 0)
