"""Rows read back from one data file, and errors of a damaged file."""

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.lake.rows import commit_rows, make_table
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.schema import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_rows_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=(name,)).added
    rows = read_rows(tmp_path, file)
    assert rows.schema.equals(TABLES[name].arrow, check_metadata=True)
    if name != "blocks":
        assert rows.equals(sort_rows(make_table(name, 1, 9), TABLES[name]))


def test_only_the_columns_wanted_in_their_order(tmp_path: Path) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=("messages",)).added
    assert read_rows(tmp_path, file, ("kind", "tx_hash")).column_names == ["kind", "tx_hash"]


@pytest.mark.parametrize("columns", [None, ("opcode", "kind", "tx_hash")])
def test_columns_newer_than_the_file_are_null(
    tmp_path: Path, columns: tuple[str, ...] | None
) -> None:
    (file,) = commit_rows(tmp_path, 1, 9, tables=("messages",)).added
    whole = read_rows(tmp_path, file)
    path = tmp_path / file.path
    pq.write_table(whole.drop_columns(["opcode"]), path)
    older = replace(file, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
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
