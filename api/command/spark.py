"""The commands ``tonlake spark``, combined from several packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.spark.cli import spark_ingest_command
from tonlake.lake.spark.cli import spark_group
from tonlake.queries.spark.cli import spark_sql_command

if TYPE_CHECKING:
    import click

spark_group.add_command(spark_ingest_command)
spark_group.add_command(spark_sql_command)
commands: list[click.Command] = [spark_group]
