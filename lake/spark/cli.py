"""The options that the commands ``tonlake spark`` share."""

from __future__ import annotations

import click

master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark runs, such as local[8], spark://host:7077 or yarn.",
)
conf_option = click.option(
    "--conf", multiple=True, metavar="NAME=VALUE", help="A Spark property; may be repeated."
)
