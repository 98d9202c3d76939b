"""Every view in other tools, through Arrow and Parquet: the rows and sums of DuckDB."""

# ruff: noqa: PLC0415 - engines may be missing; names are those of the catalogue
from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tonlake
from tonlake.lake.command.maintain import render_markdown
from tonlake.lake.duck.connection import ALL_VIEWS
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

QUESTIONS = {
    **{name: name for name in (*ALL_VIEWS, *(table.name for table in REFERENCE_TABLES))},
    "balances_at": "balances_at('2026-11-21 04:20')",
    "jetton_holders": "jetton_holders((select address from v_jettons order by address limit 1))",
}
"""What stands behind ``from``, by name."""

FILLED = ("v_accounts", "v_balances", "v_daily", "v_jetton_transfers", "v_transfers", "v_messages")
"""Views of which the demo has rows, of every kind of column."""


@pytest.fixture(scope="module")
def lake(demo_lake: Path) -> tonlake.Lake:
    return tonlake.open(demo_lake)


@pytest.fixture(scope="module")
def folder(lake: tonlake.Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every view as a Parquet file, as ``tonlake sql --format parquet`` writes it."""
    made = tmp_path_factory.mktemp("views")
    for name, question in QUESTIONS.items():
        pq.write_table(lake.sql(f"from {question}").arrow(), made / f"{name}.parquet")
    return made


def sum_columns(table: pa.Table) -> dict[str, object]:
    """Return the number of rows, of values in each column, and the sums of its numbers."""
    found: dict[str, object] = {"rows": table.num_rows}
    for name, column in zip(table.column_names, table.columns, strict=True):
        found[name] = len(column) - column.null_count
        if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
            found[name] = pc.sum(column.cast(pa.decimal256(60, 9))).as_py()
    return found


def test_every_view_is_in_the_data_dictionary() -> None:
    text = render_markdown()
    for view in (*VIEWS.values(), *REFERENCE_TABLES):
        assert f"## {view.title}\n" in text
        assert all(f"| `{column.name}` | {column.type} |" in text for column in view.columns)
    assert QUESTIONS.keys() >= {view.name for view in VIEWS.values() if view.parameters}


@pytest.mark.parametrize("name", QUESTIONS)
def test_arrow_and_polars_read_a_view(lake: tonlake.Lake, folder: Path, name: str) -> None:
    asked = lake.sql(f"from {QUESTIONS[name]}")
    expected = sum_columns(asked.arrow())
    file = folder / f"{name}.parquet"
    for table in (pq.read_table(file), pl.read_parquet(file).to_arrow(), asked.pl().to_arrow()):
        assert sum_columns(table) == expected
    assert name not in FILLED or expected["rows"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUESTIONS)
def test_datafusion_reads_a_view(lake: tonlake.Lake, folder: Path, name: str) -> None:
    if find_spec("datafusion") is None:
        pytest.skip("datafusion is not installed: make long does it where there is a wheel")
    import datafusion

    expected = sum_columns(lake.sql(f"from {QUESTIONS[name]}").arrow())
    read = datafusion.SessionContext().read_parquet(str(folder / f"{name}.parquet"))
    assert sum_columns(read.to_arrow_table()) == expected


@pytest.mark.long
def test_spark_reads_every_view(lake: tonlake.Lake, folder: Path, spark: SparkSession) -> None:
    for name, question in QUESTIONS.items():
        expected = sum_columns(lake.sql(f"from {question}").arrow())
        frame: Any = spark.read.parquet(str(folder / f"{name}.parquet"))
        assert sum_columns(frame.toArrow()) == expected, name
