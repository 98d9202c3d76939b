"""The command ``tonlake``: every package's commands under one name."""

from __future__ import annotations

from importlib.metadata import version

import click

import api.access.cli
import api.cli
import api.command.config
import api.demo
import api.doctor.cli
import ingest.cli
import ingest.spark.cli
import ingest.transfer_cli
import lake.cli
import lake.compact_cli
import queries.spark.cli
from api.command.loading import compose_settings
from ingest import native
from lake.spark.cli import spark_group


@click.group(context_settings={"obj": compose_settings})
@click.version_option(version("tonlake"), prog_name="tonlake")
def main() -> None:
    """A TON node's storage as a lake of Parquet files, asked with SQL and served over HTTP."""


@main.result_callback()
@click.pass_context
def show_decoder(context: click.Context, _result: object) -> None:
    """Name the decoder in use behind the settings; on stderr, so that JSON stays JSON."""
    if context.invoked_subcommand == "config":
        click.echo(f"blocks are decoded by: {native.describe()}", err=True)


spark_group.add_command(ingest.spark.cli.spark_ingest_command)
spark_group.add_command(queries.spark.cli.spark_sql_command)
for command in (
    *ingest.cli.commands,
    *ingest.transfer_cli.commands,
    *lake.cli.commands,
    *lake.compact_cli.commands,
    spark_group,
    *api.access.cli.commands,
    *api.cli.commands,
    *api.command.config.commands,
    *api.demo.commands,
    *api.doctor.cli.commands,
):
    main.add_command(command)
