"""Parquet files: order, types, options, and the same bytes for the same rows."""

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.lake.rows import make_table
from tonlake.lake.duck.engine import begin_database
from tonlake.lake.file import writer
from tonlake.lake.file.writer import encode_parquet, merge_rows, sort_rows, write_parquet
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

SETTINGS = LakeSettings(row_group_rows=16)


@pytest.fixture(autouse=True)
def no_plain_rows() -> Iterator[None]:
    with mock.patch.object(writer, "PLAIN_ROWS", 0):
        yield


def read_back(data: pa.Buffer) -> pa.Table:
    return pq.read_table(pa.BufferReader(data), page_checksum_verification=True)


@pytest.mark.parametrize("name", TABLES)
def test_rows_come_back_sorted_with_their_types(name: str) -> None:
    table = TABLES[name]
    rows = make_table(name, 1, 9, rows=50)
    found = read_back(encode_parquet(rows, table, SETTINGS))
    assert found.schema.equals(table.arrow)
    key = [(column, "ascending") for column in table.sort]
    assert found.equals(rows.sort_by(key))


@examples(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(TABLES)), seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_order_of_arrival_does_not_matter(name: str, seed: int, count: int) -> None:
    rows = make_table(name, 1, 2**40, seed=seed, rows=count)
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - a seed, no secret
    shuffled = rows.take(order)
    first, second = (encode_parquet(each, TABLES[name], SETTINGS) for each in (rows, shuffled))
    assert first.equals(second)


def test_rows_in_order_are_not_copied() -> None:
    rows = sort_rows(make_table("blocks", 1, 9), TABLES["blocks"])
    assert sort_rows(rows, TABLES["blocks"]) is rows


@examples(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), swaps=st.integers(0, 2), nulls=st.booleans())
def test_many_rows_are_sorted_where_they_are_not_in_order(
    seed: int, swaps: int, *, nulls: bool
) -> None:
    """Few distinct keys, so that ties go down to the last one; in pieces."""
    rng = random.Random(seed)  # noqa: S311 - a seed, no secret
    count = 1_100
    keys = sorted((rng.randrange(9), rng.randrange(3), rng.randrange(9)) for _ in range(count))
    for _ in range(swaps):
        one, other = rng.randrange(count), rng.randrange(count)
        keys[one], keys[other] = keys[other], keys[one]
    if nulls:
        keys[rng.randrange(count)] = (9, 9, 9)
    columns = {
        "lt": pa.array([lt for lt, _, _ in keys], pa.int64()),
        "workchain": pa.array([None if w == 9 else w for _, w, _ in keys], pa.int32()),
        "account": pa.array([bytes(31) + bytes((at,)) for _, _, at in keys], pa.binary(32)),
        "mc_seqno": pa.array(range(count), pa.int64()),
    }
    rows = pa.table(columns)
    cut = rng.randrange(count)
    found = sort_rows(
        pa.concat_tables([rows.slice(0, cut), rows.slice(cut)]), TABLES["transactions"]
    )
    assert found["mc_seqno"].to_pylist() == sorted(range(count), key=keys.__getitem__)


def test_file_layout() -> None:
    data = encode_parquet(
        make_table("transactions", 1, 9, rows=50), TABLES["transactions"], SETTINGS
    )
    facts = pq.ParquetFile(pa.BufferReader(data)).metadata
    assert [facts.row_group(at).num_rows for at in range(facts.num_row_groups)] == [16, 16, 16, 2]
    names = TABLES["transactions"].names
    assert [names[column.column_index] for column in facts.row_group(0).sorting_columns] == [
        "lt",
        "workchain",
        "account",
    ]
    assert {facts.row_group(0).column(at).compression for at in range(len(names))} == {"ZSTD"}
    assert facts.metadata is None


@pytest.mark.parametrize("name", sorted(TABLES))
def test_few_rows_are_written_plain(name: str) -> None:
    table = TABLES[name]
    few, many = (make_table(name, 1, 9, rows=count) for count in (50, 51))
    for rows, most, packing in ((few, 50, "UNCOMPRESSED"), (few, 0, "ZSTD"), (many, 50, "ZSTD")):
        with mock.patch.object(writer, "PLAIN_ROWS", most):
            data = encode_parquet(rows, table, SETTINGS)
        facts = pq.ParquetFile(pa.BufferReader(data)).metadata
        columns = [facts.row_group(0).column(at) for at in range(facts.num_columns)]
        assert {column.compression for column in columns} == {packing}
        bounded = {column.path_in_schema for column in columns if column.is_stats_set}
        assert bounded >= {"mc_seqno", "lt", "utime"}.intersection(table.names)
        assert len(facts.row_group(0).sorting_columns) == len(table.sort)
        assert read_back(data).equals(sort_rows(rows, table))


def test_a_flipped_bit_fails_the_page_checksum() -> None:
    data = bytearray(
        encode_parquet(make_table("state_cells", 1, 9), TABLES["state_cells"], SETTINGS)
    )
    at = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(2).data_page_offset
    data[at + 60] ^= 1
    with pytest.raises(OSError, match="CRC"):
        read_back(pa.py_buffer(bytes(data)))


@pytest.mark.parametrize("plain_rows", [0, 50])
def test_nulls_are_found_beside_a_single_value(tmp_path: Path, plain_rows: int) -> None:
    rows = make_table("transaction_traces", 1, 9, rows=9)
    parents = pa.array([None] * 8 + [bytes(32)], pa.binary(32))
    rows = rows.set_column(rows.column_names.index("parent_hash"), "parent_hash", parents)
    file = tmp_path / "rows.parquet"
    with mock.patch.object(writer, "PLAIN_ROWS", plain_rows):
        file.write_bytes(encode_parquet(rows, TABLES["transaction_traces"], SETTINGS))
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(file)).filter("parent_hash is null")
        assert found.count("*").fetchall() == [(8,)]


def test_many_state_cells_are_looked_up_without_reading_files_that_lack_them(
    tmp_path: Path,
) -> None:
    table, path = TABLES["state_cells"], tmp_path / "cells.parquet"
    known, foreign = (
        [hashlib.sha256(f"{name} {at}".encode()).digest() for at in range(20_000)]
        for name in ("known", "foreign")
    )
    rows = [{"hash": each, "mc_seqno": 1, "cell": b"\0\0", "refs": []} for each in known]
    data = encode_parquet(pa.Table.from_pylist(rows, table.arrow), table, LakeSettings())
    path.write_bytes(data)

    def count_read(hashes: list[bytes]) -> int:
        """Return the number of bytes of the file that a look-up reads."""
        query = "select hash from read_parquet($path) where hash in (select unnest($hashes))"
        with begin_database(LakeSettings()) as connection:
            explained = connection.execute(
                f"explain (analyze, format json) {query}", {"path": str(path), "hashes": hashes}
            ).fetchall()
        size_bytes: int = json.loads(explained[0][1])["io"]["total_bytes_read"]
        return size_bytes

    assert count_read(known[:1]) > data.size / 2
    assert sum(count_read(foreign[at : at + 200]) for at in range(0, 2_000, 200)) < 4 * data.size


TABLE = TABLES["transaction_traces"]


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "WINDOW_ROWS", 5)
        yield


def make_pieces(seed: int, sizes: list[int], *, keys: int) -> list[pa.Table]:
    """Generate pieces whose keys repeat, in one piece and across several."""
    rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
    pieces = []
    for number, size in enumerate(sizes):
        rows = make_table(TABLE.name, 1, 9, seed=seed + number, rows=size)
        lt = pa.array([rng.randrange(keys) + 3 * number for _ in range(size)], pa.int64())
        same = pa.array([0] * size, pa.int32()), pa.array([bytes(32)] * size, pa.binary(32))
        columns = {"lt": lt, "workchain": same[0], "account": same[1]}
        pieces.append(
            pa.table([columns.get(name, rows[name]) for name in TABLE.names], schema=TABLE.arrow)
        )
    return pieces


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(0, 40), max_size=6),
    keys=st.sampled_from([1, 4, 100]),
    memory_rows=st.sampled_from([1, 7, 10_000]),
)
@settings(max_examples=60, deadline=None)
def test_merged_rows_are_the_sorted_rows(
    seed: int,
    sizes: list[int],
    keys: int,
    memory_rows: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    pieces = make_pieces(seed, sizes, keys=keys)
    merged = list(merge_rows(iter(pieces), TABLE, memory_rows, folder))
    joined = pa.concat_tables([TABLE.arrow.empty_table(), *pieces])
    assert pa.concat_tables([TABLE.arrow.empty_table(), *merged]).equals(sort_rows(joined, TABLE))


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(0, 40), max_size=6),
    memory_rows=st.sampled_from([1, 7, 10_000]),
)
@settings(max_examples=30, deadline=None)
def test_null_stands_behind_other_keys(
    seed: int, sizes: list[int], memory_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, table = tmp_path_factory.getbasetemp(), TABLES["message_bodies"]
    rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
    pieces = []
    for number, size in enumerate(sizes):
        names = [rng.choice((None, "a", "b")) for _ in range(size)]
        rows = make_table(table.name, 1, 9, seed=seed + number, rows=size)
        at = table.names.index("decoded_opcode")
        pieces.append(rows.set_column(at, rows.schema.field(at), pa.array(names, pa.string())))
    merged = list(merge_rows(iter(pieces), table, memory_rows, folder))
    joined = pa.concat_tables([table.empty, *pieces])
    expected = sort_rows(joined, table)
    assert pa.concat_tables([table.empty, *merged]).equals(expected)
    nulls = expected["decoded_opcode"].is_null().to_pylist()
    assert nulls == sorted(nulls)


def test_files_do_not_depend_on_the_pieces_they_are_written_from(tmp_path: Path) -> None:
    options = LakeSettings(row_group_rows=16)
    pieces = make_pieces(3, [30, 1, 25, 16], keys=50)
    sink = pa.BufferOutputStream()
    merged = merge_rows(iter(pieces), TABLE, 20, tmp_path)
    assert write_parquet(sink, merged, TABLE, options, 72) == 72
    assert sink.getvalue().equals(encode_parquet(pa.concat_tables(pieces), TABLE, options))
    assert list(tmp_path.iterdir()) == []
