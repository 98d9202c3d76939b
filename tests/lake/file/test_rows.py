"""Rows of a data file, and their Python values."""

import gc
import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lake.rows import commit_rows, make_table
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import (
    iter_dicts,
    iter_tuples,
    keep_rows,
    list_values,
    make_rows,
    read_rows,
    without_collector,
)
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.schema import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_rows_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=(name,)).added
    rows = read_rows(tmp_path, file)
    assert rows.schema.equals(TABLES[name].arrow, check_metadata=True)
    assert (
        read_rows(tmp_path, file, TABLES[name].names[1::-1]).column_names
        == rows.column_names[1::-1]
    )
    if name != "blocks":
        assert rows.equals(sort_rows(make_table(name, 1, 9), TABLES[name]))


@pytest.mark.parametrize("columns", [None, ("opcode", "kind", "tx_hash")])
@pytest.mark.parametrize("pack", ["", "tail/one.arrows"])
def test_columns_newer_than_the_file_are_null(
    tmp_path: Path, columns: tuple[str, ...] | None, pack: str
) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=("messages",)).added
    whole, sink = read_rows(tmp_path, file), pa.BufferOutputStream()
    fewer = whole.drop_columns(["opcode"])
    with (pa.ipc.new_stream if pack else pq.ParquetWriter)(sink, fewer.schema) as writer:
        writer.write_table(fewer)
    data = sink.getvalue()
    older = replace(file, sha256=hashlib.sha256(data).hexdigest(), pack=pack, bytes=data.size)
    (tmp_path / older.stored).parent.mkdir(exist_ok=True)
    (tmp_path / older.stored).write_bytes(data)
    rows = read_rows(tmp_path, older, columns)
    assert rows.column_names == list(columns or whole.column_names)
    assert rows["opcode"].null_count == rows.num_rows > 0
    assert rows["kind"].equals(whole["kind"])


def test_damage_is_named(tmp_path: Path) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=("messages",)).added
    path = tmp_path / file.path
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(LakeCorrupt, match=r"messages/day=.*do not match its digest"):
        read_rows(tmp_path, file)
    path.unlink()
    with pytest.raises(LakeCorrupt, match=r"messages/day=.*cannot be read"):
        read_rows(tmp_path, file)


HASHES = st.binary(min_size=4, max_size=4)
KINDS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.binary(32): HASHES.map(lambda each: each * 8),
    pa.binary(4): HASHES,
    pa.binary(): st.binary(max_size=5),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.list_(pa.binary(32)): st.lists(st.none() | HASHES.map(lambda each: each * 8), max_size=3),
    pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=3),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
def test_values_are_those_of_arrow(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=40))
    cut, start = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 20))
    column = pa.chunked_array([values[:cut], values[cut:]], type=kind).slice(start)
    assert list_values(column) == values[start:]
    assert list_values(pa.array(values, kind).slice(start)) == values[start:]


@pytest.mark.parametrize("count", [0, 40, 400])
def test_rows_are_those_of_arrow(count: int) -> None:
    names = ("code_hash", "mc_seqno", "methods", "names")
    made = [(bytes(32), at, [at], None if at % 2 else [str(at)]) for at in range(count)]
    dicts = [dict(zip(names, row, strict=True)) for row in made]
    rows = make_rows(TABLES["interfaces"], made)
    assert rows.equals(pa.Table.from_pylist(dicts, TABLES["interfaces"].arrow))
    assert rows.equals(make_rows(TABLES["interfaces"], dicts), check_metadata=True)
    assert list(iter_dicts(rows)) == dicts
    assert list(iter_tuples(rows, names)) == made
    for least in (0, 20, count):
        is_kept = pc.greater_equal(rows["mc_seqno"], least)
        assert keep_rows(rows, is_kept).equals(rows.filter(is_kept))


def test_the_collector_works_again_afterwards() -> None:
    with without_collector():
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the collector stays off for the one who began"
    assert gc.isenabled()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), without_collector():
        int("bad")
    assert gc.isenabled()
