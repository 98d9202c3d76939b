"""The command ``tonlake``: every package's commands under one name."""

from __future__ import annotations

from importlib.metadata import version

import click

import tonlake.api.access.cli
import tonlake.api.command.demo
import tonlake.api.command.doctor.cli
import tonlake.api.command.loading
import tonlake.api.command.serve
import tonlake.ingest.command.ingest
import tonlake.ingest.command.transfer
import tonlake.ingest.spark.cli
import tonlake.lake.command.cli
import tonlake.lake.command.compact
import tonlake.queries.spark.cli
from tonlake.api.command.loading import compose_settings
from tonlake.ingest.decode import native
from tonlake.lake.spark.cli import spark_group


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


spark_group.add_command(tonlake.ingest.spark.cli.spark_ingest_command)
spark_group.add_command(tonlake.queries.spark.cli.spark_sql_command)
for command in (
    *tonlake.ingest.command.ingest.commands,
    *tonlake.ingest.command.transfer.commands,
    *tonlake.lake.command.cli.commands,
    *tonlake.lake.command.compact.commands,
    spark_group,
    *tonlake.api.access.cli.commands,
    *tonlake.api.command.serve.commands,
    *tonlake.api.command.loading.commands,
    *tonlake.api.command.demo.commands,
    *tonlake.api.command.doctor.cli.commands,
):
    main.add_command(command)
