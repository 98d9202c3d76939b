"""Merging sorted pieces gives the same rows as sorting them together in memory."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.rows import make_table
from tonlake.lake.file import merge
from tonlake.lake.file.merge import merge_rows
from tonlake.lake.file.writer import encode_parquet, sort_rows, write_parquet
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

TABLE = TABLES["transaction_traces"]


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "WINDOW_ROWS", 5)
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
