"""The option ``--node``, and the environment variable that replaces it."""

from pathlib import Path

import click
from click.core import ParameterSource

from tonlake.lake.command.argument import Folder

NODE_VARIABLE = "TONLAKE_NODE"
"""The environment variable with the node's folder, for commands without ``--node``."""

node_option, required_node_option = (
    click.option(
        "--node",
        type=Folder(),
        required=required,
        envvar=NODE_VARIABLE,
        show_envvar=True,
        help="Database folder of a TON node (read only).",
    )
    for required in (False, True)
)


def choose_folder(folder: Path | None, *, elsewhere: bool, option: str = "node") -> Path | None:
    """Return an option's folder; None if it is only in the environment and ``elsewhere`` is set."""
    source = click.get_current_context().get_parameter_source(option)
    return None if elsewhere and source is ParameterSource.ENVIRONMENT else folder


def keep_apart(lake: Path, *sources: Path | None) -> None:
    """Raise UsageError if the lake is inside a source folder, which is never written."""
    for source in sources:
        if source is not None and lake.resolve().is_relative_to(source.resolve()):
            raise click.UsageError(
                f"--lake {lake} is inside {source}, which is only read: choose another folder"
            )
