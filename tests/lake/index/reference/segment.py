"""Composes a segment in plain Python, for comparison with the extension."""

from __future__ import annotations

import io
from array import array
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tests.lake.index.reference.contracts import write_contracts
from tests.lake.index.reference.encoder import Around, RecordEncoder
from tests.lake.index.reference.postings import cut_hash, write_keys, write_postings
from tonlake.lake.index.segment.file import SegmentWriter
from tonlake.lake.index.segment.places import PLACED
from tonlake.lake.index.segment.record import (
    FACT_COLUMNS,
    MESSAGE_COLUMNS,
    STATE_COLUMNS,
    TRACE,
    TRANSACTION_COLUMNS,
)
from tonlake.lake.index.segment.segment import pack_account

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

Row = dict[str, Any]
States = dict[bytes, Row]
NO_HASH = bytes(32)
NO_OPCODE, NO_LT = 1 << 32, (1 << 63) - 1
BY_TIME = ("key", "lt", "row")
ONCE = ("created", "hash", "check")
OF_END = (*ONCE, "is_source")
BY_CREATION = ("key", *OF_END, "row", "place")


class Reference:
    """Composes one segment; ``add_part`` for every part, then ``finish``."""

    def __init__(self, max_remembered: int, max_numbered: int) -> None:
        self.encoder = RecordEncoder(max_remembered, max_numbered)
        self.records = bytearray()
        self.record_at: list[int] = []
        self.rows: list[Row] = []
        self.traces: list[tuple[bytes, bytes]] = []
        self.accounts: list[tuple[int, bytes]] = []
        self.account_row: list[int] = []
        self.balance: list[int] = []
        self.state, self.state_at = bytearray(), [0]
        self.ends: list[tuple[int, int, Row]] = []

    def add_part(self, tables: Mapping[str, pa.Table]) -> None:
        history = group_rows(tables["transactions"], ("workchain", "account"), ("lt",))
        messages = group_rows(tables["messages"], ("tx_hash",), ("direction", "msg_index"))
        states = group_rows(
            tables["account_states"], ("workchain", "account"), ("mc_seqno", "block_seqno")
        )
        traces = {row["hash"]: row for row in tables["transaction_traces"].to_pylist()}
        for account in sorted(history.keys() | states.keys(), key=itemgetter(1, 0)):
            by_hash: States = {}
            for state in states.get(account, []):
                by_hash.pop(state["hash"], None)
                by_hash[state["hash"]] = state
            self.accounts.append(account)
            self.account_row.append(len(self.rows))
            before = None
            for row in history.get(account, []):
                trace = traces.get(row["hash"], {})
                self.traces.append(
                    (trace.get("trace_id", NO_HASH), trace.get("parent_hash") or NO_HASH)
                )
                self.add_row(row, before, by_hash, messages.get((row["hash"],), []))
                before = row
            self.add_newest(list(by_hash.values()), before)

    def add_row(
        self, row: Row, before: Row | None, states: States, messages: Sequence[Row]
    ) -> None:
        number = len(self.rows)
        self.ends += ((number, place, message) for place, message in enumerate(messages))
        self.rows.append(row)
        self.record_at.append(self.encoder.at)
        hash_before = row["account_state_hash_before"]
        same = before is not None and before["account_state_hash_after"] == hash_before
        after = states.get(row["account_state_hash_after"])
        facts = ... if same else pick_or_none(states.get(hash_before), FACT_COLUMNS)
        self.records += self.encoder.encode_record(
            look_around(row["account"], row["lt"], row["now"], before),
            pick(row, TRANSACTION_COLUMNS),
            [pick(message, MESSAGE_COLUMNS) for message in messages],
            (facts, pick_or_none(after, FACT_COLUMNS)),
        )

    def add_newest(self, states: list[Row], last: Row | None) -> None:
        if states:
            around = look_around(b"", last["lt"] if last else 0, 0, last)
            newest = pick(states[-1], STATE_COLUMNS)
            self.state += self.encoder.encode_newest(around, newest)
        self.balance.append(states[-1]["balance"] if states else 0)
        self.state_at.append(len(self.state))

    def finish(
        self,
        mc_range: tuple[int, int],
        ended: pa.Table,
        contracts: Iterable[tuple[str, pa.Table]] = (),
        places: Iterable[tuple[str, pa.Table]] = (),
    ) -> bytes:
        """Return the bytes of the segment."""
        stream = io.BytesIO()
        writer = SegmentWriter(stream)
        writer.add("records", self.records)
        add_numbers(writer, "record.at", [*self.record_at, self.encoder.at])
        writer.add("hash", b"".join(row["hash"] for row in self.rows))
        writer.add("hash_after", b"".join(row["account_state_hash_after"] for row in self.rows))
        for name in ("lt", "now", "mc_seqno"):
            add_numbers(writer, name, [row[name] for row in self.rows])
        self.write_accounts(writer)
        self.write_postings(writer)
        self.write_traces(writer, ended)
        writer.add("shape", self.encoder.encode_shapes())
        write_contracts(writer, contracts)
        write_places(writer, list(places))
        writer.finish(mc_range, len(self.rows))
        return stream.getvalue()

    def write_accounts(self, writer: SegmentWriter) -> None:
        packed = [pack_account(account) for account in self.accounts]
        writer.add("account.id", b"".join(packed))
        add_numbers(writer, "account.row", [*self.account_row, len(self.rows)])
        add_numbers(writer, "state.at", self.state_at)
        writer.add("state", self.state)
        add_numbers(writer, "balance", self.balance)
        known = [
            number
            for number in range(len(packed))
            if self.state_at[number] < self.state_at[number + 1]
        ]
        known.sort(key=lambda number: (-self.balance[number], *self.accounts[number]))
        add_numbers(writer, "richest", known)
        write_keys(writer, "account.key", [cut_hash(account) for account in packed])

    def write_postings(self, writer: SegmentWriter) -> None:
        rows = list(enumerate(self.rows))
        by_hash = [(cut_hash(row["hash"]), number) for number, row in rows]
        write_postings(writer, "transaction", ("key", "row"), by_hash, hashed=True)
        by_block = [(row["mc_seqno"], row["lt"], number) for number, row in rows]
        write_postings(writer, "block", BY_TIME, by_block)
        failed = [(row["now"], row["lt"], number) for number, row in rows if row["aborted"]]
        write_postings(writer, "failed", BY_TIME, failed)
        ends = [(row, place, read_end(message)) for row, place, message in self.ends]
        hashes = [(end["hash"], row) for row, _, end in ends]
        hashes += [(end["norm"], row) for row, _, end in ends if end["norm"] is not None]
        write_postings(writer, "message", ("key", "row"), hashes, hashed=True)
        opcodes = [
            (end["opcode"], *pick(end, OF_END), row, place)
            for row, place, end in ends
            if end["opcode"] != NO_OPCODE
        ]
        write_postings(writer, "opcode", BY_CREATION, opcodes, ONCE)
        bodies = [(end["body"], *pick(end, OF_END), row, place) for row, place, end in ends]
        write_postings(writer, "body", BY_CREATION, bodies, ONCE, hashed=True, apart=True)
        again = Counter(row[2:4] for row in bodies if row[1] == NO_LT)
        for name, rows_, hashed in (("opcode", opcodes, False), ("body", bodies, True)):
            found = [row for row in rows_ if row[1] == NO_LT and again[row[2:4]] > 1]
            write_postings(writer, f"{name}_again", BY_CREATION, found, hashed=hashed, apart=hashed)
        self.write_alone(writer)

    def write_alone(self, writer: SegmentWriter) -> None:
        kinds: dict[bytes, set[str | None]] = {}
        for _, _, message in self.ends:
            kinds.setdefault(message["msg_hash"][:16], set()).add(find_peer(message)[0])
        for kind in ("to", "from"):
            alone = [
                (cut_hash(find_peer(message)[1]), *pick(read_end(message), OF_END), row, place)
                for row, place, message in self.ends
                if kinds[message["msg_hash"][:16]] == {kind}
            ]
            write_postings(
                writer, f"alone_{kind}", BY_CREATION, alone, ONCE, hashed=True, apart=True
            )
        alone_from = [
            (row, place, message)
            for row, place, message in self.ends
            if kinds[message["msg_hash"][:16]] == {"from"}
        ]
        for name, column in (("alone_lt", "created_lt"), ("alone_now", "created_at")):
            times = [
                (make_key(message[column]), *pick(read_end(message), OF_END), row, place)
                for row, place, message in alone_from
            ]
            write_postings(writer, name, BY_CREATION, times, ONCE)
        add_numbers(writer, "wait", [self.wait("lt", "created_lt"), self.wait("now", "created_at")])

    def wait(self, consumed: str, created: str) -> int:
        waits = (
            self.rows[row][consumed] - message[created]
            for row, _, message in self.ends
            if message["direction"].startswith("i") and message[created] is not None
        )
        longest: int = max(0, 0, *waits)
        return min(longest, NO_LT)

    def write_traces(self, writer: SegmentWriter, ended: pa.Table) -> None:
        first: dict[int, int] = {}
        for number, row in enumerate(self.rows):
            first.setdefault(cut_hash(row["hash"]), number)
        numbers = {NO_HASH: 0}

        def find(tx_hash: bytes) -> int | None:
            number = first.get(cut_hash(tx_hash))
            return number if number is not None and self.rows[number]["hash"] == tx_hash else None

        def place(tx_hash: bytes) -> int:
            number = find(tx_hash)
            if number is not None:
                return number + 1
            return numbers.setdefault(tx_hash, len(self.rows) + len(numbers))

        roots = [place(trace_id) for trace_id, _ in self.traces]
        add_numbers(writer, "root", roots)
        add_numbers(writer, "parent", [place(parent) for _, parent in self.traces])
        writer.add("other", b"".join(list(numbers)[1:]))
        by_trace = [
            (cut_hash(self.traces[number][0]), row["lt"], number)
            for number, row in enumerate(self.rows)
            if roots[number]
        ]
        write_postings(writer, "trace", BY_TIME, by_trace, hashed=True)
        rows = sorted(ended.to_pylist(), key=itemgetter("trace_id"))
        write_keys(writer, "ended.key", [cut_hash(row["trace_id"]) for row in rows])
        data, at = bytearray(), [0]
        for row in rows:
            began: int | None = find(row["trace_id"])
            root = None if began is None else (began, *pick(self.rows[began], ("lt", "now")))
            data += self.encoder.encode_trace(row["trace_id"], root, pick(row, TRACE.columns))
            at.append(len(data))
        add_numbers(writer, "ended.at", at)
        writer.add("ended.data", data)
        longest = [
            max(0, 0, *(wrap(row[f"end_{unit}"] - row[f"start_{unit}"]) for row in rows))
            for unit in ("lt", "utime")
        ]
        add_numbers(writer, "ended.longest", longest)


def write_places(writer: SegmentWriter, parts: Sequence[tuple[str, pa.Table]]) -> None:
    for table, columns in PLACED.items():
        rows = [row for name, part in parts if name == table for row in part.to_pylist()]
        for column in columns:
            found = [(cut_hash(row[column]), row["mc_seqno"]) for row in rows]
            write_postings(writer, f"{table}.{column}", ("key", "row"), found, hashed=True)


def make_key(moment: int | None) -> int:
    return NO_LT if moment is None else max(0, moment)


def wrap(number: int) -> int:
    """Return a number as 64 bits store it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def find_peer(message: Row) -> tuple[str | None, bytes]:
    """Return the direction and account of a message's other end, None if there is none."""
    if message["direction"].startswith("i") and message["source"] is not None:
        return "from", message["source"]
    if message["destination"] is not None:
        return "to", message["destination"]
    return None, b""


def read_end(message: Row) -> Row:
    """Return the posting of one end of a message."""
    msg_hash, norm = message["msg_hash"], message["hash_norm"]
    opcode, created = message["opcode"], message["created_lt"]
    return {
        "hash": cut_hash(msg_hash),
        "check": cut_hash(msg_hash[8:]),
        "norm": None if norm is None or norm == msg_hash else cut_hash(norm),
        "body": cut_hash(message["body_hash"]),
        "opcode": NO_OPCODE if opcode is None else opcode % NO_OPCODE,
        "created": NO_LT if created is None else created,
        "is_source": not message["direction"].startswith("i"),
    }


def look_around(account: bytes, lt: int, now: int, before: Row | None) -> Around:
    if before is None:
        return Around(account, lt, lt, now, None, None)
    hashes = before["hash"], before["account_state_hash_after"]
    return Around(account, lt, before["lt"], now, *hashes)


def pick(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def pick_or_none(row: Row | None, names: Sequence[str]) -> tuple[Any, ...] | None:
    return None if row is None else pick(row, names)


def add_numbers(writer: SegmentWriter, name: str, numbers: list[int]) -> None:
    writer.add_numbers(name, array("q", numbers))


def group_rows(table: pa.Table, key: Sequence[str], order: Sequence[str]) -> dict[Any, list[Row]]:
    """Return rows grouped by some columns, each group in order."""
    rows = sorted(table.to_pylist(), key=itemgetter(*key, *order))
    return {each: list(group) for each, group in groupby(rows, key=lambda row: pick(row, key))}
