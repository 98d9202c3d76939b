"""Spark reads the rows of a lake as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.duck.connection import connect
from tonlake.lake.spark.tables import open_lake

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


def test_times_are_those_of_the_lake_in_every_time_zone(
    spark: SparkSession, demo_lake: Path, tmp_path: Path
) -> None:
    commit_rows(tmp_path, 1, 10)  # in a pack
    for folder in (demo_lake, tmp_path):
        lake = open_lake(spark, str(folder))
        lake.session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        times = connect(lake.snapshot).sql("select time from blocks order by time").fetchall()
        assert times
        frame = lake.read("blocks").select("time").orderBy("time")
        assert frame.toArrow()["time"].to_pylist() == [time for (time,) in times]
