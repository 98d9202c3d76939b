"""The command group ``tonlake spark``, and the options that its commands share."""

from __future__ import annotations

import click


@click.group("spark", epilog="Example: tonlake spark sql v3/seqno_ranges --lake mainnet.lake")
def spark_group() -> None:
    """Run queries on Apache Spark, if one machine is too small (extra "spark" and Java 17)."""


master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark runs, such as local[8], spark://host:7077 or yarn.",
)
conf_option = click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A Spark property; may be repeated.",
)
