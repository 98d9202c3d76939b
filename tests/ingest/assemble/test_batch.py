"""Where commits end: at a day, at a gap, and at the configured size."""

from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.assemble import batch as batches
from tonlake.ingest.assemble.batch import Batch, Piece, measure_rows, piece_day, split_by_day
from tonlake.ingest.decode.rows import make_table
from tonlake.ingest.settings import IngestSettings
from tonlake.lake.schema import BASE_TABLES, BLOCKS, TRANSACTIONS, Table

DAY_S = 86_400


def make_piece(first: int, last: int, *, day: int = 0, transactions: int = 0) -> Piece:
    """Return a piece with a masterchain block for each seqno."""
    blocks = [
        _make_row(BLOCKS, workchain=-1, seqno=n, gen_utime=day * DAY_S) for n in (first, last)
    ]
    tables = {table.name: table.arrow.empty_table() for table in BASE_TABLES}
    tables[BLOCKS.name] = make_table(BLOCKS, blocks)
    tables[TRANSACTIONS.name] = make_table(TRANSACTIONS, [_make_row(TRANSACTIONS)] * transactions)
    return Piece(first, last, tables)


def _make_row(table: Table, **values: int) -> tuple[object, ...]:
    empty = {"hash": bytes(32), "text": "", "bytes": b"", "bool": False}
    return tuple(
        values.get(column.name, None if column.nullable else empty.get(column.type, 0))
        for column in table.columns
    )


def test_a_batch_takes_what_follows() -> None:
    batch = Batch(IngestSettings())
    assert not batch
    assert batch.add(make_piece(1, 5))
    assert batch.add(make_piece(6, 9))
    assert [piece.first for piece in batch.pieces] == [1, 6]
    assert batch.day == "1970-01-01"


@pytest.mark.parametrize(
    ("settings", "following"),
    [
        ({}, make_piece(7, 9)),
        ({}, make_piece(6, 9, day=1)),
        ({"mc_blocks_per_commit": 8}, make_piece(6, 9)),
        ({}, make_piece(6, 9, transactions=3)),
        ({"commit_bytes": 1}, make_piece(6, 9)),
    ],
    ids=["gap", "day", "blocks", "transactions", "bytes"],
)
@mock.patch.object(batches, "TRANSACTIONS", 4)
def test_a_batch_ends_before(settings: dict[str, int], following: Piece) -> None:
    batch = Batch(msgspec.convert(settings, IngestSettings))
    assert batch.add(make_piece(1, 5, transactions=2))
    assert not batch.add(following)
    assert len(batch.pieces) == 1
    batch.clear()
    assert not batch
    assert batch.add(following), "an empty batch takes every piece"


def test_rows_take_the_same_however_they_came() -> None:
    rows = make_piece(1, 2, transactions=64).tables[TRANSACTIONS.name]
    size_bytes = measure_rows(TRANSACTIONS.name, rows)
    assert size_bytes == pytest.approx(rows.nbytes, rel=0.02)
    parts = [rows.slice(start, 16) for start in range(0, 64, 16)]
    assert sum(measure_rows(TRANSACTIONS.name, part) for part in parts) == pytest.approx(
        size_bytes, rel=0.02
    )


@given(st.lists(st.sampled_from((0, 0, 0, 1, 2)), min_size=1, max_size=12))
def test_days_end_between_blocks_that_share_seconds(steps: list[int]) -> None:
    """Every masterchain block is in the part of its day, whatever its neighbours' seconds."""
    times, utime = [], DAY_S - 3
    for step in steps:
        utime += step
        times.append(utime)
    blocks = [
        _make_row(BLOCKS, workchain=-1, seqno=seqno, mc_seqno=seqno, gen_utime=utime)
        for seqno, utime in enumerate(times, 1)
    ]
    tables = {BLOCKS.name: make_table(BLOCKS, blocks)}
    parts = split_by_day(Piece(1, len(times), tables))
    found = [
        (seqno, piece_day(part)) for part in parts for seqno in range(part.first, part.last + 1)
    ]
    days = {0: "1970-01-01", 1: "1970-01-02"}
    assert found == [(seqno, days[utime // DAY_S]) for seqno, utime in enumerate(times, 1)]
    assert sum(part.tables[BLOCKS.name].num_rows for part in parts) == len(times)
