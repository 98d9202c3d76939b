"""The group ``tonlake spark``, and the options that its commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group("spark", epilog="Example: tonlake spark sql v3/seqno_ranges --lake mainnet.lake")
def spark_group() -> None:
    """Work with Apache Spark, where one machine is too small (extra "spark" and Java 17)."""


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
    help="A setting of Spark's own; may be repeated.",
)


def read_pairs(options: Sequence[str], option: str) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a dict.

    Raises:
        UsageError: one has no equals sign.
    """
    pairs = [text.partition("=") for text in options]
    for name, sign, _value in pairs:
        if not sign:
            raise click.UsageError(f"{option} {name}: write NAME=VALUE")
    return {name: value for name, _sign, value in pairs}
