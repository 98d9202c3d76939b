"""The commands ``tonlake spark``, combined from several packages."""

import click

from tonlake.ingest.spark.cli import spark_ingest_command
from tonlake.queries.spark.cli import spark_sql_command


@click.group("spark")
def spark_group() -> None:
    """Ingest or query on Apache Spark, if one machine is too small (extra "spark" and Java 17)."""


spark_group.add_command(spark_ingest_command)
spark_group.add_command(spark_sql_command)
commands: list[click.Command] = [spark_group]
