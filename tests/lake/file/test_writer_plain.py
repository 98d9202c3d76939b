"""Plain files written in C equal pyarrow's byte for byte; other columns are left to pyarrow."""

from __future__ import annotations

import random
from itertools import chain
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.lake.rows import MAKERS, make_table
from tonlake.lake.file import writer
from tonlake.lake.file.native import NATIVE
from tonlake.lake.file.writer import encode_parquet, encode_plain, sort_rows, write_parquet
from tonlake.lake.schema import ARROW_TYPES, TABLES, Column, Table
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

MAX_VALUES = 1024

_OF_TABLES = {column.type for table in TABLES.values() for column in table.columns}
TYPES: tuple[str, ...] = tuple(name for name in ARROW_TYPES if name in _OF_TABLES)
WHOLE = Table(
    "whole",
    "A column of each type, and the same that may be NULL; two have statistics.",
    (
        Column("seqno", "int64", "What the rows are in order of."),
        Column("other_utime", "int32", "May be NULL, and has statistics.", nullable=True),
        *(Column(f"all_{name}", name, "Never NULL.") for name in TYPES),  # type: ignore[arg-type]
        *(
            Column(f"some_{name}", name, "NULL at times.", nullable=True)  # type: ignore[arg-type]
            for name in TYPES
        ),
    ),
    key=("seqno",),
    sort=("seqno",),
)


def encode_with_pyarrow(rows: pa.Table, table: Table) -> bytes:
    sink = pa.BufferOutputStream()
    write_parquet(sink, [rows], table, LakeSettings(), rows.num_rows)
    return bytes(sink.getvalue())


def make_rows(maps: dict[str, list[bool]], seed: int, max_elements: int) -> pa.Table:
    """Generate rows of all types, with NULLs where the maps say."""
    rng = random.Random(seed)  # noqa: S311 - a seed, no secret
    count = len(next(iter(maps.values())))

    def make(column: Column, row: int) -> Any:
        if column.name == "seqno":
            return row // 2
        if column.nullable and not maps[column.type][row]:
            return None
        made = MAKERS[column.type](rng)
        if not isinstance(made, list):
            return made
        wanted = rng.randrange(max_elements + 1)
        made = list(chain.from_iterable(MAKERS[column.type](rng) for _ in range(wanted)))[:wanted]
        return [None if rng.random() < 0.1 else value for value in made]

    columns = [
        pa.array([make(column, row) for row in range(count)], ARROW_TYPES[column.type])
        for column in WHOLE.columns
    ]
    return pa.table(columns, schema=WHOLE.arrow)


@st.composite
def presence(draw: st.DrawFn, count: int) -> list[bool]:
    """Presence maps of values: runs shorter and longer than the packed ones."""
    found: list[bool] = []
    while len(found) < count:
        length = draw(st.sampled_from((1, 1, 2, 7, 8, 9, 15, 16, 17, 100, 500)))
        pattern = draw(st.sampled_from(((True,), (False,), (True, False))))
        found += (list(pattern) * length)[:length]
    return found[:count]


@st.composite
def any_rows(draw: st.DrawFn) -> pa.Table:
    count = draw(st.sampled_from((1, 2, 7, 8, 9, 63, 100, 340)))
    maps = {name: draw(presence(count)) for name in TYPES}
    return make_rows(maps, draw(st.integers(0, 2**32)), draw(st.sampled_from((0, 1, 3))))


@examples(max_examples=30, deadline=None)
@given(rows=any_rows(), start=st.integers(0, 5))
def test_bytes_are_those_of_pyarrow(rows: pa.Table, start: int) -> None:
    whole = rows.slice(min(start, rows.num_rows - 1))
    assert encode_plain(whole, WHOLE) == encode_with_pyarrow(whole, WHOLE)


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("count", [1, 300])
def test_rows_of_every_table(name: str, count: int) -> None:
    table = TABLES[name]
    rows = sort_rows(make_table(name, 1, 9, rows=count), table)
    assert encode_plain(rows, table) == encode_with_pyarrow(rows, table)


@examples(max_examples=10, deadline=None)
@given(rows=any_rows().filter(lambda rows: rows.num_rows <= 100))
def test_duckdb_reads_the_rows(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "plain.parquet"
    file.write_bytes(encode_plain(rows, WHOLE) or b"")
    with duckdb.connect() as connection:
        found = connection.execute("from read_parquet(?)", [str(file)]).fetchall()
    assert found == [tuple(row.values()) for row in rows.to_pylist()]


def test_the_same_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, table = make_table("actions", 1, 9, rows=90), TABLES["actions"]
    settings = LakeSettings()
    made = encode_parquet(rows, table, settings)
    monkeypatch.setattr(writer, "NATIVE", None)
    assert encode_parquet(rows, table, settings).equals(made)


def test_chunks_are_joined() -> None:
    table = TABLES["messages"]
    rows = sort_rows(make_table("messages", 1, 9, rows=90), table)
    cut = pa.concat_tables([rows.slice(0, 11), rows.slice(11, 70), rows.slice(81)])
    assert encode_plain(cut, table) == encode_plain(rows, table)


@examples(max_examples=30, deadline=None)
@given(rows=any_rows(), seed=st.integers(0, 2**32))
def test_rows_in_any_order(rows: pa.Table, seed: int) -> None:
    numbers = list(range(rows.num_rows))
    random.Random(seed).shuffle(numbers)  # noqa: S311 - a seed, no secret
    turned = rows.take(numbers)
    assert encode_plain(turned, WHOLE) == encode_with_pyarrow(sort_rows(turned, WHOLE), WHOLE)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_rows_of_a_table_in_any_order(name: str) -> None:
    table = TABLES[name]
    rows = make_table(name, 1, 9, rows=90)
    made = encode_plain(rows, table)
    assert made == encode_with_pyarrow(sort_rows(rows, table), table)
    assert made != encode_with_pyarrow(rows, table)


@pytest.mark.parametrize("presence", ["all", "some"])
@pytest.mark.parametrize("kind", TYPES)
def test_order_by_a_column_of_each_type(kind: str, presence: str) -> None:
    key = Column("key", kind, "", nullable=presence == "some")  # type: ignore[arg-type]
    table = Table("any", "", (key, Column("seqno", "int64", "")), key=("key",), sort=("key",))
    whole = make_rows({name: [row % 3 > 0 for row in range(50)] for name in TYPES}, 3, 1)
    rows = pa.table([whole[f"{presence}_{kind}"], pa.array(range(50))], schema=table.arrow)
    made = encode_plain(rows, table)
    if kind in {"amount", "hashes", "ints", "texts"}:
        assert made is None
    else:
        assert made == encode_with_pyarrow(sort_rows(rows, table), table)


def test_what_is_left_to_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES["queue_sizes"]
    rows = sort_rows(make_table("queue_sizes", 1, 9, rows=MAX_VALUES + 1), table)
    assert encode_plain(rows, table) is None
    assert encode_plain(rows.slice(1), table) is not None
    assert encode_plain(rows.slice(0, 0), table) is None
    assert encode_plain(rows.slice(0, 9).drop_columns("mc_seqno"), table) is None
    full = {name: [True] for name in TYPES}
    long_list = pa.array([[1] * (MAX_VALUES + 1)], ARROW_TYPES["ints"])
    at = WHOLE.names.index("all_ints")
    whole = make_rows(full, 0, 1)
    assert encode_plain(whole.set_column(at, WHOLE.arrow[at], long_list), WHOLE) is None
    monkeypatch.setattr(writer, "NATIVE", None)
    assert encode_plain(rows.slice(1), table) is None


def test_null_where_none_may_be() -> None:
    rows = make_rows({name: [True, True] for name in TYPES}, 0, 1)
    for at, column in enumerate(WHOLE.columns):
        if not column.nullable:
            nulls = pa.array([None, None], ARROW_TYPES[column.type])
            assert encode_plain(rows.set_column(at, WHOLE.arrow[at], nulls), WHOLE) is None


def test_what_is_no_batch_is_refused() -> None:
    assert NATIVE is not None
    batch = make_table("queue_sizes", 1, 9, rows=1).to_batches()[0]
    schema, rows = batch.__arrow_c_array__()
    for wrong in (
        (schema, rows),
        (schema, rows, (b"", b"", b"")),
        (schema, schema, (b"", b"", b"", b"")),
        (rows, rows, (b"", b"", b"", b"")),
        (None, None, (b"", b"", b"", b"")),
    ):
        with pytest.raises((TypeError, ValueError)):
            NATIVE.encode(*wrong)
    columns = bytes(batch.num_columns)
    assert NATIVE.encode(schema, rows, (b"", b"", columns, b"\xff")) is None
    assert NATIVE.encode(schema, rows, (b"", b"", columns[1:], b"")) is None
    assert NATIVE.encode(schema, rows, (b"", b"", columns, b"")) is not None


def test_a_file_is_found_sound(tmp_path: Path) -> None:
    rows = make_rows({name: [True, False, True] for name in TYPES}, 1, 2)
    file = tmp_path / "plain.parquet"
    file.write_bytes(encode_plain(rows, WHOLE) or b"")
    read = pa.parquet.read_table(file, page_checksum_verification=True)
    assert read.equals(rows)
