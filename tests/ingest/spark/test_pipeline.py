"""Ingest by Spark gives the same lake as the local path, file by file, byte by byte."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.lake.rows import file_bytes
from tests.patience import compose
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.ingest.spark.cli import SparkPipeline
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.spark.tables import open_lake

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    # Nothing goes through pandas here; the notebooks, in the same environment, want its version 3.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

SETTINGS = compose(
    ingest={"mc_blocks_per_chunk": 20, "mc_blocks_per_commit": 90, "detect_contracts": False},
    lake={"delta": False},
)
"""Several tasks to a job, several jobs and several commits; the command publishes once."""


def test_spark_makes_the_same_lake(spark: SparkSession, demo_node: Path, tmp_path: Path) -> None:
    origin = Origin(demo_node)
    here, there = tmp_path / "here", tmp_path / "there"
    with closing(origin.open(SETTINGS)) as source:
        last = source.last_mc_seqno()
        ingest(source, here, Span(1, last), SETTINGS)
        with closing(SparkPipeline(spark, origin, source, there, SETTINGS)) as pipeline:
            first = pipeline.bring(Span(1, 100))
            # A block that is not there yet ends the run; what the lake has is passed over.
            rest = pipeline.bring(Span(1, last + 30))
    assert first.committed == ["1:80", "81:100"]
    assert rest.skipped == ["1:100"]
    assert rest.stopped_at == last + 1
    assert not rest.holes
    assert open_snapshot(there).ranges == ((1, last),)
    _assert_equal_rows(spark, here, there)


def test_spark_makes_the_same_files(spark: SparkSession, demo_node: Path, tmp_path: Path) -> None:
    origin = Origin(demo_node)
    here, there = tmp_path / "here", tmp_path / "there"
    with closing(origin.open(SETTINGS)) as source:
        span = Span(1, source.last_mc_seqno())
        local = ingest(source, here, span, SETTINGS)
        with closing(SparkPipeline(spark, origin, source, there, SETTINGS)) as pipeline:
            report = pipeline.bring(span)
    assert report == local
    assert len(report.committed) > 1
    assert file_bytes(there) == file_bytes(here)


def _assert_equal_rows(spark: SparkSession, here: Path, there: Path) -> None:
    """Compare tables as Spark reads them; one of the lakes by its URL."""
    one, other = open_lake(spark, str(here)), open_lake(spark, f"file://{there}")
    for name in ("blocks", "transactions", "messages", "account_states", "traces"):
        rows = sorted(map(repr, one.read(name).toArrow().to_pylist()))
        assert rows
        assert sorted(map(repr, other.read(name).toArrow().to_pylist())) == rows, name
