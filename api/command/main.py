"""The command ``tonlake``: combines the commands of all packages."""

import atexit
import difflib
import gc
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import click

from tonlake.lake.settings import CONFIG_VARIABLE

if TYPE_CHECKING:
    from tonlake.api.settings import Settings

MODULES = {
    "classify": "tonlake.ingest.command.action",
    "compact": "tonlake.lake.command.maintain",
    "prune": "tonlake.lake.command.maintain",
    "config": "tonlake.api.command.loading",
    "decode": "tonlake.api.command.decode",
    "demo": "tonlake.api.command.demo",
    "doctor": "tonlake.api.command.doctor",
    "explain": "tonlake.ingest.command.action",
    "export": "tonlake.ingest.command.pull",
    "fetch-metadata": "tonlake.ingest.command.metadata",
    "ingest": "tonlake.ingest.command.ingest",
    "ingest-state": "tonlake.ingest.command.ingest",
    "key": "tonlake.api.access",
    "query": "tonlake.queries.cli",
    "pull": "tonlake.ingest.command.pull",
    "rebuild": "tonlake.ingest.command.rebuild",
    "run": "tonlake.api.python.run",
    "scan": "tonlake.api.python.cli",
    "schema": "tonlake.lake.command.maintain",
    "serve": "tonlake.api.command.serve",
    "spark": "tonlake.api.command.spark",
    "sql": "tonlake.api.python.command",
    "status": "tonlake.api.command.status",
    "table": "tonlake.lake.command.maintain",
    "upgrade": "tonlake.ingest.command.rebuild",
    "verify": "tonlake.lake.command.maintain",
    "views": "tonlake.lake.command.maintain",
}
"""The module of each command, listed in its ``commands``."""


def read_help(name: str) -> str | None:
    """Return the docstring of a command from its module's compiled code, which does not run."""
    spec = find_spec(MODULES[name])
    loader: Any = spec and spec.loader
    functions = {f"{name.replace('-', '_')}_{kind}" for kind in ("command", "group")}
    for part in loader.get_code(MODULES[name]).co_consts:
        if isinstance(part, CodeType) and part.co_name in functions:
            return FunctionType(part, {}).__doc__
    raise LookupError(f"{MODULES[name]} defines none of {functions}")


def read_examples() -> Iterator[tuple[str, str]]:
    """Return commands and their examples, as click prints them after the options."""
    text = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)[1:]
    for names, section in zip(sections[::2], sections[1::2], strict=True):
        examples = section.strip("\n")
        if "\n" in examples:
            kept = re.sub("^(?=  )|(?<=\n\n)(?=  )", "\b\n", examples)  # lines not to be joined
            examples = f"Examples:\n\n{kept}"
        else:
            examples = f"Example: {examples.strip()}"
        yield from ((name, examples) for name in names.split(", "))


def add_examples(command: click.Command, name: str, examples: Mapping[str, str]) -> click.Command:
    """Return a command whose help, and that of the commands below it, ends with examples."""
    command.epilog = examples.get(name)
    command.short_help = command.get_short_help_str(limit=160)  # click cuts it at the line
    for each, below in command.commands.items() if isinstance(command, click.Group) else ():
        add_examples(below, f"{name} {each}", examples)
    return command


class LazyGroup(click.Group):
    """A group that imports a command's module on use, as importing all takes a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the names of all commands."""
        return sorted(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, or None if there is none of this name."""
        if cmd_name not in MODULES:
            return None
        listed: list[click.Command] = import_module(MODULES[cmd_name]).commands
        command = next(command for command in listed if command.name == cmd_name)
        return add_examples(command, cmd_name, dict(read_examples()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; an unknown name is refused with the most similar one."""
        near = difflib.get_close_matches(args[0], MODULES, n=1)
        if near and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write every command with the full first sentence of its help."""
        limit = formatter.width * 2
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=read_help(name)).get_short_help_str(limit))
                    for name in sorted(MODULES)
                ]
            )


def compose_settings() -> "Settings":
    """Return the settings from the environment, for click's context object."""
    from tonlake.api.command.loading import load_settings  # noqa: PLC0415 - not for --help

    return load_settings()[0]


@click.group(cls=LazyGroup, context_settings={"obj": compose_settings})
@click.version_option(version("tonlake"), prog_name="tonlake")
@click.pass_context
def main(context: click.Context) -> None:
    """Turn a TON node's storage into a lake of Parquet files, for SQL and the HTTP API."""
    # Commands that read no setting would ignore it; the doctor reports it itself.
    named = os.environ.get(CONFIG_VARIABLE)
    if named and context.invoked_subcommand != "doctor" and not Path(named).exists():
        raise click.UsageError(f"{CONFIG_VARIABLE} names {named}, which does not exist")
    # The command is loaded: its modules are never garbage, and it handles Ctrl-C itself.
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
        atexit.register(_thaw)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _thaw() -> None:
    """Let DuckDB's modules be collected at the end: it prints what is left of its objects.

    Without DuckDB, to visit all modules once more takes 0.2 s and has no effect.
    """
    if "duckdb" in sys.modules:
        gc.unfreeze()


@main.result_callback()
@click.pass_context
def show_decoder(context: click.Context, _result: object) -> None:
    """Print the decoder in use after the settings; on stderr, so that stdout stays JSON."""
    if context.invoked_subcommand == "config":
        from tonlake.ingest.decode import native  # noqa: PLC0415 - only needed here

        click.echo(f"blocks are decoded by: {native.describe()}", err=True)
