"""Composes a segment from the rows of one range of masterchain blocks."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate, groupby
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import list_values
from tonlake.lake.index.segment.bags import write_bags
from tonlake.lake.index.segment.declared import (
    ABSENT,
    ACCOUNT_STATES,
    ACCOUNTS,
    ACTION_ACCOUNTS,
    FACT_COLUMNS,
    INDEXED,
    LT,
    MESSAGE_COLUMNS,
    MESSAGES,
    NO_LT,
    TRANSACTIONS,
    workchain_of,
)
from tonlake.lake.index.segment.file import SegmentWriter
from tonlake.lake.index.segment.postings import cut_hash, write_postings
from tonlake.lake.index.segment.rows import (
    Pool,
    encode_rows,
    list_columns,
    write_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.builder.source import Source
    from tonlake.lake.index.segment.declared import Indexed

AT_ONCE = 4_096
"""Rows that are Python objects at a time."""

_ARROW = {"q": pa.int64(), "I": pa.uint32(), "i": pa.int32()}
_SPECIAL = frozenset({TRANSACTIONS.name, MESSAGES.name, ACCOUNT_STATES.name, ACTION_ACCOUNTS.name})


def compose(stream: IO[bytes], source: Source, *, packed: bool = True) -> int:
    """Write the segment of a source's range, and return the number of transactions.

    ``packed``: many rows are compressed.

    Raises:
        LakeCorrupt: a data file is missing or damaged.
    """
    composer = _Composer(source)
    transactions = composer.add_chain()
    for table in INDEXED.values():
        if table.name not in _SPECIAL:
            composer.add_table(table, sort_rows(source.read_table(table.name), table.sort))
    composer.finish(stream, packed=packed)
    return transactions


def sort_rows(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return rows in order; NULL comes last, and rows of equal keys stay in their order."""
    return rows.take(_sort(rows, names)) if rows.num_rows > 1 else rows


def _sort(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """Return the order of rows by columns, those of equal keys in their order."""
    places = rows.select(list(names)).append_column("place", _count(rows.num_rows))
    return pc.sort_indices(places, [(name, "ascending") for name in (*names, "place")])


def _sort_by(numbers: Iterable[int]) -> pa.Array:
    """Return the order of rows by the numbers of their accounts; those of equal ones stay."""
    return pc.sort_indices(_pack("I", numbers))  # a stable sort


def _count(rows: int) -> pa.Array:
    """Return 0, 1, 2 ... for some rows."""
    return _pack("I", range(rows))


def _pack(code: str, values: Iterable[int]) -> pa.Array:
    """Return an Arrow array of numbers."""
    numbers = array(code, values)
    return pa.Array.from_buffers(_ARROW[code], len(numbers), [None, pa.py_buffer(numbers)])


class _Composer:
    """The arrays and rows of one segment."""

    def __init__(self, source: Source) -> None:
        self._source, self._writer = source, SegmentWriter()
        self._rows: dict[str, list[bytes]] = {}
        self._pool = Pool(())

    def finish(self, stream: IO[bytes], *, packed: bool) -> None:
        self._pool.write(self._writer)
        write_rows(self._writer, self._rows, packed=packed)
        self._writer.write(stream, self._source.mc_range)

    def add_table(self, table: Indexed, rows: pa.Table, copies: list[bytes] | None = None) -> None:
        """Add the rows of a table, which are in order; ``copies`` are theirs, if encoded before."""
        name = table.name
        for column in (*table.hashes, *table.keys):
            values, places = rows[column].combine_chunks(), _count(rows.num_rows)
            if table.once and column != "account":
                places = _find_first(rows, column)
                values = values.take(places)
            write_postings(self._writer, f"{name}.{column}", values, places)
        for column, code in table.numbers.items():
            self._add_numbers(f"{name}.{column}", rows[column].combine_chunks(), code)
        for order in table.orders:
            places = pc.cast(_sort(rows, order), pa.uint32())
            self._writer.add(f"{name}.by_{order[0]}", places)
        self._rows[name] = self._encode(table, rows) if copies is None else copies
        if table.name == "traces":
            self._writer.add("trace.longest", _pack("q", _find_longest(rows)))

    def _add_numbers(self, name: str, values: pa.Array, code: str) -> None:
        """Add numbers of a type, or of a wider one if they need it."""
        low = pc.max_element_wise(values, 0, skip_nulls=False)  # no block is older than 1970
        if (pc.max(low).as_py() or 0) >= ABSENT[code]:
            code = LT
        self._writer.add(name, pc.cast(pc.fill_null(low, ABSENT[code]), _ARROW[code]))

    def _encode(self, table: Indexed, rows: pa.Table) -> list[bytes]:
        """Return the copies of rows."""
        found: list[bytes] = []
        for start in range(0, rows.num_rows, AT_ONCE):
            found += encode_rows(list_columns(rows.slice(start, AT_ONCE), table.copied, self._pool))
        return found

    def add_chain(self) -> int:
        """Add transactions, messages and states of accounts, and the actions of accounts."""
        rows = sort_rows(self._source.read_table(TRANSACTIONS.name), TRANSACTIONS.sort)
        self._pool = Pool(list_values(rows["hash"]))
        around = self._add_accounts(rows)
        self.add_table(TRANSACTIONS, rows, self._add_messages(rows, around))
        write_postings(
            self._writer, "transactions.hash", rows["hash"].combine_chunks(), _count(rows.num_rows)
        )
        self._add_traces(rows)
        self._add_blocks(rows)
        count: int = rows.num_rows
        return count

    def _add_accounts(self, rows: pa.Table) -> list[list[Any]]:
        """Add accounts with their newest states and their actions.

        Return the facts of the states before and after each transaction; None if unknown.
        """
        read = self._source.read_table
        states = sort_rows(read(ACCOUNT_STATES.name), ACCOUNT_STATES.sort)
        actions = sort_rows(read(ACTION_ACCOUNTS.name), ACTION_ACCOUNTS.sort)
        accounts = self._number_accounts(rows, states, actions)
        numbers, of_state, of_action = (
            [accounts[each] for each in _list_accounts(table)] for table in (rows, states, actions)
        )
        newest = list({number: row for row, number in enumerate(of_state)}.values())
        held = states.take(_pack("I", newest))
        of_held = [of_state[row] for row in newest]
        write_bags(self._writer, rows["boc"].take(_sort_by(numbers)))
        self._list_rows(list(accounts), [numbers, of_held, of_action])
        self._writer.add("transactions.account", _pack("I", numbers))
        self._rank(held, of_held)
        self.add_table(ACCOUNT_STATES, held)
        self.add_table(ACTION_ACCOUNTS, actions)
        return self._find_states(rows, numbers, states, of_state)

    def _number_accounts(self, *tables: pa.Table) -> dict[AccountId, int]:
        """Return the accounts of all rows by id, then workchain, with their numbers."""
        every = {account for rows in tables for account in _list_accounts(rows)}
        ordered = sorted(every, key=itemgetter(1, 0))
        return {account: number for number, account in enumerate(ordered)}

    def _list_rows(self, accounts: list[AccountId], owners: Sequence[Sequence[int]]) -> None:
        add, numbers = self._writer.add, self._pool.number(account for _, account in accounts)
        add("account.key", _pack("I", (cut_hash(account) for _, account in accounts)))
        add("account.workchain", _pack("i", (workchain for workchain, _ in accounts)))
        add("account.hash", pa.array(numbers, pa.uint32()))
        for name, listed in zip(ACCOUNTS, owners, strict=True):
            counts = [0] * len(accounts)
            for number in listed:
                counts[number] += 1
            add(f"account.{name}", _pack("I", accumulate(counts)))
        add("account.transaction", pc.cast(_sort_by(owners[0]), pa.uint32()))

    def _add_messages(self, rows: pa.Table, around: Sequence[Sequence[Any]]) -> list[bytes]:
        """Add messages, and return the copies of transactions, with theirs and the states around.

        Moments of messages are relative to those of the transaction.
        """
        messages = self._source.read_table(MESSAGES.name)
        at = pc.index_in(messages["tx_hash"], value_set=rows["hash"].combine_chunks())
        messages = messages.append_column("row", at)
        order = _sort(messages, ("row", "direction", "msg_index"))
        owners = list_values(at.take(order))  # NULL, of no transaction, comes last
        del owners[len(owners) - at.null_count :]
        contents, copies, end = array("q"), list[bytes](), 0
        for start in range(0, rows.num_rows, AT_ONCE):
            part = rows.slice(start, AT_ONCE)
            end, first = bisect_left(owners, start + AT_ONCE), end
            own = messages.take(order.slice(first, end - first))
            columns = list_columns(own, MESSAGE_COLUMNS, self._pool)
            lines = list(zip(*columns, strict=True))
            contents.extend(hash(line[_CONTENT_AT:]) for line in lines)
            lts, times = (list_values(part[name]) for name in ("lt", "now"))
            nested: list[list[list[Any]]] = [[] for _ in lts]
            for owner, line in zip(owners[first:end], lines, strict=True):
                at_once = owner - start
                nested[at_once].append(_shift(line, lts[at_once], times[at_once]))
            columns = list_columns(part, TRANSACTIONS.copied, self._pool)
            more = (each[start : start + AT_ONCE] for each in around)
            copies += encode_rows([*columns, nested, *more])
        messages = messages.select(_OF_ENDS).take(order.slice(0, len(owners)))
        self._add_ends(messages, owners, contents)
        return copies

    def _add_ends(self, rows: pa.Table, owners: Sequence[int], contents: Sequence[int]) -> None:
        """Add each message once, with the transactions at its ends."""
        places = _count_same(owners)
        filled = pc.fill_null(rows["created_lt"], NO_LT)
        rows = rows.set_column(rows.schema.get_field_index("created_lt"), "created_lt", filled)
        order = _sort(rows, MESSAGES.sort)
        hashes, directions = list_values(rows["msg_hash"]), list_values(rows["direction"])
        kept, home = array("I"), array("I")
        ends = {"in": array("I"), "out": array("I")}
        for own in _unite(order.to_pylist(), hashes, contents, directions):
            first = own.get("in", own.get("out", 0))
            kept.append(first)
            home.append(places[first])
            for direction, rows_of in ends.items():
                rows_of.append(owners[own[direction]] + 1 if direction in own else 0)
        self.add_table(MESSAGES, rows.take(_pack("I", kept)), [])
        for direction, rows_of in ends.items():
            self._writer.add(f"messages.{direction}", _pack("I", rows_of))
        self._writer.add("messages.place", pc.cast(_pack("I", home), pa.uint16()))
        numbers = self._pool.number(hashes[row] for row in kept)
        self._writer.add("messages.hash", pa.array(numbers, pa.uint32()))

    def _rank(self, states: pa.Table, numbers: Sequence[int]) -> None:
        """Add the newest balances, highest first."""
        newest = dict(zip(numbers, list_values(states["balance"]), strict=True))
        workchains = dict(zip(numbers, list_values(states["workchain"]), strict=True))
        ranked = sorted(newest, key=lambda number: (-newest[number], workchains[number], number))
        self._writer.add("balance", _pack("q", map(newest.__getitem__, ranked)))
        self._writer.add("balance.account", _pack("I", ranked))

    def _find_states(
        self, rows: pa.Table, numbers: Sequence[int], states: pa.Table, of_state: Sequence[int]
    ) -> list[list[Any]]:
        """Return the facts of the states before and after each transaction; None if unknown."""
        facts = list(zip(*list_columns(states, FACT_COLUMNS, self._pool), strict=True))
        known = dict(
            zip(zip(of_state, list_values(states["hash"]), strict=True), facts, strict=False)
        )
        return [
            list(map(known.get, zip(numbers, list_values(rows[name]), strict=True)))
            for name in ("account_state_hash_before", "account_state_hash_after")
        ]

    def _add_traces(self, rows: pa.Table) -> None:
        """Add the trace of each transaction, and the transaction that sent its message."""
        traces = self._source.read_table("transaction_traces")
        at = pc.index_in(rows["hash"], value_set=traces["hash"].combine_chunks())
        for name, column in (("trace", "trace_id"), ("parent", "parent_hash")):
            values = traces[column].combine_chunks().take(at.combine_chunks())
            numbers = self._pool.number(list_values(values))
            counted = (0 if number is None else number + 1 for number in numbers)
            self._writer.add(f"transactions.{name}", _pack("I", counted))
            if name == "trace":
                write_postings(self._writer, "transactions.trace_id", values, _count(rows.num_rows))

    def _add_blocks(self, rows: pa.Table) -> None:
        """Add the masterchain blocks of transactions, with the moments of each."""
        names = ("mc_seqno", "lt", "now", "aborted")
        seqnos, lts, times, aborted = (list_values(rows[name]) for name in names)
        failed = [row for row, is_aborted in enumerate(aborted) if is_aborted]
        failed.sort(key=lambda row: (times[row], lts[row]))
        self._writer.add("transactions.failed", _pack("I", failed))
        blocks = [list(found) for _, found in groupby(range(rows.num_rows), seqnos.__getitem__)]
        self._writer.add("block.mc_seqno", _pack("q", (seqnos[block[0]] for block in blocks)))
        self._writer.add("block.end", _pack("I", (block[-1] + 1 for block in blocks)))
        for name, moments in (("lt", lts), ("now", times)):
            for end, choose in (("first", min), ("last", max)):
                edges = (choose(moments[row] for row in block) for block in blocks)
                self._writer.add(f"block.{end}_{name}", _pack("q", edges))


def _find_first(rows: pa.Table, column: str) -> pa.Array:
    """Return the first row of each account with a value in an address column."""
    names = (column, workchain_of(column), "account", "workchain")
    keys = zip(*(list_values(rows[name]) for name in names), strict=True)
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    return _pack("I", first.values())


def _list_accounts(rows: pa.Table) -> Iterator[AccountId]:
    return zip(list_values(rows["workchain"]), list_values(rows["account"]), strict=True)


_LT_AT, _TIME_AT = map(MESSAGE_COLUMNS.index, ("created_lt", "created_at"))
_CONTENT_AT = MESSAGE_COLUMNS.index("msg_hash")
"""Where the columns begin that both ends of a message have."""

_OF_ENDS = ("direction", *MESSAGES.hashes, *MESSAGES.keys, *MESSAGES.numbers)


def _shift(line: Sequence[Any], lt: int, now: int) -> list[Any]:
    """Return the columns of a message with its moments relative to others."""
    shifted = list(line)
    if shifted[_LT_AT] is not None:
        shifted[_LT_AT] -= lt
        shifted[_TIME_AT] -= now
    return shifted


def _count_same(owners: Sequence[int]) -> array[int]:
    """Return how many equal values come directly before each."""
    places = array("I")
    for _, same in groupby(owners):
        places.extend(range(len(list(same))))
    return places


def _unite(
    order: Iterable[int],
    hashes: Sequence[bytes],
    contents: Sequence[int],
    directions: Sequence[str],
) -> Iterator[dict[str, int]]:
    """Yield the rows of each message by direction; those of one hash are adjacent in the order.

    A message that was consumed again is another one, and so is one of the same hash with other
    contents.
    """
    for _, rows in groupby(order, hashes.__getitem__):
        found: dict[int, list[dict[str, int]]] = {}
        for row in rows:
            alike, direction = found.setdefault(contents[row], []), directions[row]
            own = next((each for each in alike if direction not in each), None)
            if own is None:
                alike.append({direction: row})
            else:
                own[direction] = row
        for alike in found.values():
            yield from alike


def _find_longest(traces: pa.Table) -> Iterator[int]:
    """Yield the longest durations of a trace, in logical time and Unix seconds."""
    for unit in ("lt", "utime"):
        spans = pc.subtract(traces[f"end_{unit}"], traces[f"start_{unit}"])
        yield max(0, pc.max(spans).as_py() or 0)
