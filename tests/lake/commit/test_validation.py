"""Rows that a lake accepts and rows that it refuses."""

import pyarrow as pa
import pytest

from tests.lake.rows import make_table, make_tables
from tonlake.lake.commit.validation import check_tables
from tonlake.lake.errors import RowsRejected
from tonlake.lake.schema import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_every_table_enter(name: str) -> None:
    rows = make_table(name, 5, 9)
    checked = check_tables({name: rows}, (5, 9), "2024-02-29")
    assert checked[name].schema == TABLES[name].arrow
    assert checked[name].equals(rows)


def test_empty_tables_are_left_out() -> None:
    empty = {name: table.arrow.empty_table() for name, table in TABLES.items()}
    assert check_tables(empty, (1, 1), "2024-01-01") == {}


def test_zero_state_enters_with_block_one_only() -> None:
    rows = {"config_params": make_table("config_params", 0, 0)}
    assert check_tables(rows, (1, 7), "2024-01-01")
    with pytest.raises(RowsRejected, match=r"0\.\.0"):
        check_tables(rows, (2, 7), "2024-01-01")


@pytest.mark.parametrize("mc_range", [(0, 5), (6, 5), (-1, -1)])
def test_no_range(mc_range: tuple[int, int]) -> None:
    with pytest.raises(RowsRejected, match="not a range"):
        check_tables({}, mc_range, "2024-01-01")


@pytest.mark.parametrize("day", ["", "2024-1-1", "2023-02-29", "20240101", "../../etc"])
def test_no_day(day: str) -> None:
    with pytest.raises(RowsRejected, match="not a day"):
        check_tables({}, (1, 5), day)


@pytest.mark.parametrize("mc_range", [(2, 9), (1, 8)])
def test_rows_outside_the_range(mc_range: tuple[int, int]) -> None:
    with pytest.raises(RowsRejected, match=r"rows of blocks are of masterchain blocks 1\.\.9"):
        check_tables(make_tables(1, 9), mc_range, "2024-01-01")


def test_unknown_table() -> None:
    with pytest.raises(RowsRejected, match="no table teapots"):
        check_tables({"teapots": make_table("blocks", 1, 1)}, (1, 1), "2024-01-01")


def test_columns_types_and_nulls_are_those_of_the_schema() -> None:
    rows = make_table("libraries", 1, 3)
    renamed = rows.rename_columns(["mc_seqno", "hash", "gone", "publishers"])
    retyped = rows.set_column(1, "hash", rows["hash"].cast(pa.binary()))
    holes = pa.array([None] * rows.num_rows, pa.bool_())
    with_nulls = rows.set_column(2, pa.field("present", pa.bool_()), holes)
    for wrong, message in (
        (renamed, "columns"),
        (retyped, "libraries.hash is binary"),
        (with_nulls, "libraries.present has NULLs"),
    ):
        with pytest.raises(RowsRejected, match=message):
            check_tables({"libraries": wrong}, (1, 3), "2024-01-01")


def test_nullable_fields_are_tightened_to_the_schema() -> None:
    rows = make_table("shard_blocks", 1, 3)
    loose = pa.table(rows.columns, names=rows.column_names)
    checked = check_tables({"shard_blocks": loose}, (1, 3), "2024-01-01")
    assert not checked["shard_blocks"].schema.field("root_hash").nullable
