"""Tables as lazy frames: the rows of the snapshot, limited to the requested days."""

from pathlib import Path

import polars as pl
import pytest

import tonlake
from tests.lake.rows import commit_rows
from tests.s3 import S3Server
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.duck.connection import VIEW_NAMES
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TABLES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_has_the_rows_of_sql(lake: tonlake.Lake, name: str) -> None:
    frame = lake.table(name).collect()
    view = VIEW_NAMES.get(name, name)
    count = lake.sql("select count(*) from query_table($view)", view=view).fetchall()
    assert [(frame.height,)] == count
    assert frame.columns == [*TABLES[name].names, "day"]
    assert frame.schema["day"] == pl.Date


def test_other_days_are_not_read(tmp_path: Path) -> None:
    folder, days = _write_days(tmp_path)
    lake = tonlake.open(folder)
    expected = lake.table("blocks").filter(pl.col("day") == days[0]).collect()
    assert expected.height > 0
    for file in read_state(folder).files:
        if file.table == "blocks" and read_place(file.path).day != str(days[0]):
            (folder / file.path).unlink()
    found = lake.table("blocks").filter(pl.col("day") == days[0]).collect()
    assert found.equals(expected)
    with pytest.raises(Exception, match="No such file"):
        lake.table("blocks").collect()


def test_object_storage_gives_the_same(s3: S3Server, tmp_path: Path) -> None:
    folder, days = _write_days(tmp_path)
    url = "s3://lakes/frames"
    copy_lake(folder, url)
    here, there = (tonlake.open(place).table("blocks") for place in (folder, url))
    assert there.collect().sort("root_hash").equals(here.collect().sort("root_hash"))
    s3.requests.clear()
    there.filter(pl.col("day") == days[0]).select("root_hash").collect()
    read = {path for method, path in s3.requests if method == "GET" and "/blocks/" in path}
    assert read
    assert all(str(days[0]) in path for path in read)


def test_a_table_that_is_none_is_named(lake: tonlake.Lake) -> None:
    with pytest.raises(KeyError, match="there is no table 'block'; tables: account_states"):
        lake.table("block")


def _write_days(tmp_path: Path) -> tuple[Path, list[object]]:
    folder = tmp_path / "lake"
    for first, last in ((1, 10), (16, 20)):
        commit_rows(folder, first, last, tables=("blocks", "transactions"))
    days = tonlake.open(folder).sql("select distinct day from blocks order by 1").fetchall()
    assert len(days) == 2
    return folder, [day for (day,) in days]
