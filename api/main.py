"""The command ``tonlake``: every package's commands under one name."""

from __future__ import annotations

from importlib.metadata import version

import click

import api.cli
import api.demo
import ingest.cli
import lake.cli


@click.group()
@click.version_option(version("tonlake"), prog_name="tonlake")
def main() -> None:
    """A TON node's storage as a lake of Parquet files, asked with SQL and served over HTTP."""


for command in (*ingest.cli.commands, *lake.cli.commands, *api.cli.commands, *api.demo.commands):
    main.add_command(command)
