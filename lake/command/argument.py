"""Arguments of commands: the folder of a lake, and SQL."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click import Context, Parameter

from tonlake.lake.duck.statement import name_root
from tonlake.lake.errors import PERMIT, LakeMisplaced
from tonlake.lake.log.state import check_outside
from tonlake.lake.storage.storage import is_url, is_web

_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")

LAKE_VARIABLE = "TONLAKE_LAKE"
"""The environment variable with the folder of the lake, for commands without ``--lake``."""


class Folder(click.Path):
    """A folder; an unreadable one is rejected with advice."""

    def __init__(self, *, exists: bool = True) -> None:
        super().__init__(exists=exists, file_okay=False, readable=False)

    def convert(
        self, value: str | os.PathLike[str], param: Parameter | None, ctx: Context | None
    ) -> Path:
        """Return the path, or exit with a usage error."""
        if "://" in os.fsdecode(value):
            self.fail(f"{os.fsdecode(value)!r} is a URL that is not supported here", param, ctx)
        folder = Path(os.fsdecode(super().convert(value, param, ctx)))
        # If the folder cannot even be inspected, the command itself reports that.
        if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):  # noqa: PTH112
            self.fail(f"{str(folder)!r} may not be read: {PERMIT}", param, ctx)
        return folder


class LakeFolder(Folder):
    """A folder that is or may become a lake: outside others, with a path that DuckDB can take."""

    def convert(
        self, value: str | os.PathLike[str], param: Parameter | None, ctx: Context | None
    ) -> Path:
        """Return the path, or exit with a usage error."""
        folder = super().convert(value, param, ctx)
        try:
            name_root(folder)
            check_outside(folder)
        except LakeMisplaced as error:
            self.fail(str(error), param, ctx)
        return folder


class FolderOrURL(click.ParamType[Path | str]):
    """A local folder, as a path, or the URL of one in object storage, as text."""

    def __init__(self, folder: Folder, *, web: bool = False) -> None:
        """Take the type of local folders, and whether URLs of web servers are accepted."""
        self.name = "FOLDER|URL" if web else "FOLDER|s3://BUCKET/PREFIX"
        self._folder, self._web = folder, web

    def convert(
        self, value: str | os.PathLike[str], param: Parameter | None, ctx: Context | None
    ) -> Path | str:
        """Return a URL unchanged, anything else as a path, or exit with a usage error."""
        if isinstance(value, str) and (is_url(value) or (self._web and is_web(value))):
            return value
        return self._folder.convert(value, param, ctx)


SOURCE = FolderOrURL(Folder(), web=True)
"""Where a lake is copied from."""

LAKE_FOLDER = LakeFolder(exists=False)


def make_lake_option(
    name: str,
    kind: click.ParamType[Any] = LAKE_FOLDER,
    text: str = "Folder of the lake.",
    *,
    required: bool = True,
) -> Callable[[_Command], _Command]:
    """Return the option ``--lake`` of a command that takes the folder as parameter ``name``."""
    return click.option(
        "--lake",
        name,
        type=kind,
        required=required,
        envvar=LAKE_VARIABLE,
        show_envvar=True,
        help=text,
    )


def make_place_option(*, required: bool) -> Callable[[_Command], _Command]:
    """Return the option ``--lake`` of a command that also reads lakes in object storage."""
    text = "Folder of the lake, or URL of a lake in object storage."
    return make_lake_option("place", FolderOrURL(LAKE_FOLDER), text, required=required)


lake_option = make_lake_option("lake_dir")
place_option = make_place_option(required=True)


format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="Format of the output; table shows the first rows only.",
)
output_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File, not stdout."
)
snapshot_option = click.option(
    "--snapshot",
    type=click.IntRange(min=1),
    help="Number of the commit to read; default: the newest.",
)


def spark_options(command: _Command) -> _Command:
    """Add the options ``--master`` and ``--conf`` of a Spark session."""
    place = "Where Spark runs, such as local[8], spark://host:7077 or yarn."
    master = click.option("--master", default="local[*]", show_default=True, help=place)
    words = "A Spark property; may be repeated."
    return master(click.option("--conf", multiple=True, metavar="NAME=VALUE", help=words)(command))


def choose_output(output: Path | None, output_format: str) -> Path | None:
    """Return the output file; None, also for ``-``, means stdout."""
    if output == Path("-"):
        output = None
    if output_format == "parquet" and output is None and sys.stdout.isatty():
        raise click.UsageError("Parquet cannot be printed to a terminal: name a file with -o FILE")
    return output


def read_pairs(options: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``NAME=VALUE`` options into a dict."""
    pairs = [text.partition("=") for text in options]
    for name, sign, _value in pairs:
        if not sign:
            raise click.UsageError(f"{option} {name}: write NAME=VALUE")
    return {name: value for name, _sign, value in pairs}


class StatementCommand(click.Command):
    """A command whose argument is SQL, even if it begins with a comment (``--``)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put such a statement after ``--``, so that it is not parsed as an option."""
        statements = [text for text in args if text.startswith("--") and "\n" in text]
        if statements and "--" not in args:
            args = [*(text for text in args if text not in statements), "--", *statements]
        return super().parse_args(ctx, args)


def read_statement(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """Decode SQL as UTF-8, whatever the terminal's encoding; invalid bytes are replaced."""
    return os.fsencode(text).decode(errors="replace")
