"""Records round-trip, and damage affects only the answer."""

from __future__ import annotations

import io
import random
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.fuzz.rows import compose, damage, make_traces, read_all
from tests.lake.chain import Chain, commit_chain
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.builder.compose import Composer
from tonlake.lake.index.builder.gather import Source
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.page.filters import fits
from tonlake.lake.index.segment import shape
from tonlake.lake.index.segment.file import SegmentFile, map_segment
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS, TRANSACTION_COLUMNS
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import MESSAGES, TABLES, TRACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tonlake.lake.index.segment.segment import Filter


@pytest.fixture
def chained(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    commit_chain(lake, Chain(8), 1, 12)
    rebuild_index(lake)
    return lake


@pytest.mark.parametrize("max_numbered", [shape._MAX_NUMBERED, 3])
def test_rows_are_found_as_they_were_written(
    chained: Path, monkeypatch: pytest.MonkeyPatch, max_numbered: int
) -> None:
    monkeypatch.setattr(shape, "_MAX_NUMBERED", max_numbered)
    segment = Segment(SegmentFile(compose(chained), "whole"))
    rows = Source(chained, read_state(chained).files, (1, 12)).read_all()
    records = segment.read_records(range(len(segment.lt)))
    assert listed(TRANSACTION_COLUMNS, (record.row for record in records)) == written(
        rows["transactions"], TRANSACTION_COLUMNS
    )
    assert listed(MESSAGE_COLUMNS, (line for each in records for line in each.messages)) == written(
        rows["messages"], MESSAGE_COLUMNS
    )
    traces = {row["trace_id"]: row for row in make_traces(rows["transactions"]).to_pylist()}
    found = segment.traces.find_ended([*traces, *(each[:31] + b"?" for each in traces)])
    assert found.keys() == traces.keys()
    for trace_id, trace in traces.items():
        assert {name: found[trace_id][name] for name in trace} == trace
    assert segment.lt_span == (min(segment.lt), max(segment.lt))


def listed(columns: Sequence[str], rows: Iterable[Any]) -> list[str]:
    """Return rows that were read, in a fixed order."""
    return sorted(repr([getattr(row, name) for name in columns]) for row in rows)


def written(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """Return rows of the lake, in the same order."""
    rows = table.select(columns).to_pylist()
    return sorted(repr([as_read(value) for value in row.values()]) for row in rows)


def as_read(value: object) -> object:
    """Amounts are read as whole numbers."""
    return int(value) if isinstance(value, Decimal) else value


def test_damage_is_an_error_or_a_wrong_value_and_no_crash(chained: Path) -> None:
    whole = compose(chained)
    rng = random.Random(3)  # noqa: S311 - the same damage every time
    refused = sum(bool(read_all(damage(whole, rng))) for _ in range(100))
    assert refused > 10


def test_a_segment_without_an_array_is_corrupt(chained: Path) -> None:
    whole = compose(chained)
    names = SegmentFile(whole, "whole").arrays.keys()
    may_lack = {name for name in names if name.endswith((".end", ".place"))}
    may_lack.add("contract.hash")  # segments of earlier versions have no contracts
    for name in names - may_lack:
        renamed = whole.replace(f'"{name}":'.encode(), f'"{name[:-1]}?":'.encode())
        assert renamed != whole
        with pytest.raises(LakeCorrupt, match="not an index segment"):
            Segment(SegmentFile(renamed, "renamed"))


def test_states_by_account(chained: Path) -> None:
    segment = Segment(SegmentFile(compose(chained), "whole"))
    accounts = [segment.account_of(number) for number in range(len(segment.balance))]
    states = segment.newest_states(accounts)
    latest = connect(open_snapshot(chained)).table("latest_account_states").to_arrow_table()
    wanted = {(row["workchain"], row["account"]): row["hash"] for row in latest.to_pylist()}
    assert wanted == {
        account: state["hash"]
        for account, state in zip(accounts, states, strict=True)
        if state is not None
    }
    strangers = [(workchain + 1, account) for workchain, account in accounts]
    assert segment.newest_states(strangers) == [None] * len(strangers)
    wrong: Any
    for wrong in ([(1 << 40, bytes(32))], [bytes(32)]):
        with pytest.raises((OverflowError, TypeError, struct.error)):
            segment.newest_states(wrong)


def test_places_outside_of_a_segment_are_refused(chained: Path) -> None:
    segment = Segment(SegmentFile(compose(chained), "whole"))
    rows = len(segment.lt)
    readings: tuple[Callable[[], object], ...] = (
        lambda: segment.read_records([rows]),
        lambda: segment.read_records([-rows - 1]),
        lambda: segment.read_lines([(0, 99)]),
        lambda: segment.choose_lines([(0, 99)], ()),
        lambda: segment.choose_lines([rows], ()),
        lambda: segment.choose_lines([-1], ()),
    )
    for read in readings:
        with pytest.raises((ValueError, IndexError)):
            read()


def test_the_end_of_a_message_that_a_row_lacks_is_none(chained: Path) -> None:
    segment = Segment(SegmentFile(compose(chained), "whole"))
    record = segment.read_records([0])[0]
    hashes = [*(line.msg_hash for line in record.messages), bytes(32)]
    ends = segment._source.read_messages([(0, each) for each in hashes])
    assert [end and end.msg_index for end in ends] == [
        *(line.msg_index for line in record.messages),
        None,
    ]


def test_filters_leave_the_messages_that_fit(chained: Path, demo_lake: Path) -> None:
    mapped = [map_segment(demo_lake, each.path) for each in open_snapshot(demo_lake).segments]
    rng = random.Random(7)  # noqa: S311 - repeatable
    for segment in map(Segment, (SegmentFile(compose(chained), "whole"), *mapped)):
        records = segment.read_records(range(len(segment.lt)))
        lines = {
            (row, at): line
            for row, record in enumerate(records)
            for at, line in enumerate(record.messages)
        }
        places = rng.sample(sorted(lines), len(lines))
        for filters in ([], *([drawn] for drawn in draw_filters(rng, list(lines.values())))):
            wanted = [at for at in places if fits(lines[at], filters)]
            found = segment.choose_lines(places, filters)
            assert [(line.row, line.place) for line in found] == wanted
            for line in found:
                read = lines[line.row, line.place]
                names = ("msg_hash", "created_lt", "created_at", "direction", "tx_lt", "tx_hash")
                assert [line[name] for name in names] == [read[name] for name in names]
                assert line.segment is segment
            of_rows = segment.choose_lines(range(len(records)), filters)
            assert [(line.row, line.place) for line in of_rows] == sorted(wanted)


def draw_filters(rng: random.Random, lines: list[Any]) -> Iterator[Filter]:
    """Yield filters of each requested column: by value, by range, and by NULL."""
    for name in (
        *("source", "source_workchain", "destination", "destination_workchain", "msg_hash"),
        *("opcode", "body_hash", "created_lt", "created_at", "direction"),
    ):
        yield name, None, None
        low, high = sorted(line[name] for line in rng.choices(lines, k=30) if line[name])[::2][:2]
        yield name, low, low
        if name != "direction":
            yield name, low, high
    yield "created_lt", -(1 << 70), 1 << 70


def test_filters_of_other_types_or_columns_are_refused(chained: Path) -> None:
    segment = Segment(SegmentFile(compose(chained), "whole"))
    wrong: Any
    for wrong in (("opcode", b"", b""), ("msg_hash", 1, 2), ("msg_hash", b"", 2)):
        with pytest.raises(ValueError, match=r"another type|one type"):
            segment.choose_lines(range(len(segment.lt)), [wrong])
    with pytest.raises(ValueError, match="two bounds"):
        segment._source.choose_messages([0], ((99, 0, 1),), (), None)
    with pytest.raises(ValueError, match="lacks a column"):
        segment._source.choose_messages([0], (), (99,), None)


def test_columns_are_those_of_rows(chained: Path, demo_lake: Path) -> None:
    mapped = [map_segment(demo_lake, each.path) for each in open_snapshot(demo_lake).segments]
    for segment in map(Segment, (SegmentFile(compose(chained), "whole"), *mapped)):
        records = segment.read_records(range(len(segment.lt)))
        lines = [(record.row, line) for record in records for line in record.messages]
        places = [(row, at) for row, one in enumerate(records) for at in range(len(one.messages))]
        named = [(row, line.msg_hash) for (row, _), (_, line) in zip(places, lines, strict=True)]
        own = {f"tx_{name}": name for name in ("workchain", "account", "lt", "hash")}
        own |= {"mc_seqno": "mc_seqno", "now": "now"}
        expected = [
            {name: row[own[name]] if name in own else line[name] for name in MESSAGES.names}
            for row, line in lines
        ]
        found = segment.read_columns(places, MESSAGES.names)
        assert found.schema.equals(MESSAGES.arrow)
        found.validate(full=True)
        assert found.to_pylist() == expected
        assert segment.read_columns([*named, (0, bytes(32))], MESSAGES.names).equals(found)
        assert segment.read_columns([], ["opcode"]).num_rows == 0
    with pytest.raises(ValueError, match="lacks a message"):
        segment.read_columns([(0, 99)], ["opcode"])


def test_transactions_of_a_trace_are_listed_in_order() -> None:
    """By logical time, then workchain and account; those outside of the bounds are left out."""
    rows = Chain(8).make(1, 12)
    hashes = rows["transactions"]["hash"].to_pylist()
    names = ("workchain", "account", "lt", "hash", "mc_seqno")
    traces = [
        row | {"trace_id": hashes[at % 2], "parent_hash": hashes[at // 2] if at else None}
        for at, row in enumerate(rows["transactions"].select(names).to_pylist())
    ]
    rows["transaction_traces"] = pa.Table.from_pylist(
        traces, schema=TABLES["transaction_traces"].arrow
    )
    stream = io.BytesIO()
    composer = Composer(stream)
    composer.add_part(rows)
    composer.finish((1, 12), TRACES.empty)
    segment = Segment(SegmentFile(stream.getvalue(), "whole"))
    for trace_id in hashes[:2]:
        places = sorted(
            (row["lt"], row["workchain"], row["account"], row["hash"], row["parent_hash"])
            for row in traces
            if row["trace_id"] == trace_id
        )
        found = segment.list_trace(trace_id, places[0][0], places[-1][0])
        shown = [(member.lt, member.hash, member.parent_hash) for member in found]
        assert shown == [(lt, tx_hash, parent) for lt, _, _, tx_hash, parent in places]
        assert [segment.hash_of(member.row) for member in found] == [each[3] for each in places]
        assert all(member.segment is segment and member.trace_id == trace_id for member in found)
        assert segment.list_trace(trace_id, places[-1][0] + 1, 1 << 62) == []
    with pytest.raises(ValueError, match="trace id"):
        segment.list_trace(b"short", 0, 1)
    assert len({row["lt"] for row in traces}) < len(traces)
