"""What all commands share: their settings, errors, progress and output."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

import click
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn

from tonlake.lake.duck.answer import TABLE_ROWS, TEXT_WRITERS, write_parquet, write_table
from tonlake.lake.errors import LakeError, advise
from tonlake.lake.settings import LakeSections

EXIT_DATA = 1
S = TypeVar("S", bound=LakeSections)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def read_settings(kind: type[S]) -> S:
    """Return the settings of the running command, which click's context object loads."""
    settings = click.get_current_context().obj()
    if not isinstance(settings, kind):
        raise TypeError(f"{type(settings).__name__} is not composed of {kind.__name__}")
    return settings


@contextmanager
def failing_cleanly(*others: type[Exception]) -> Iterator[None]:
    """Print an error in one line, one of ``others`` too, and exit as for a data problem."""
    expected: tuple[type[Exception], ...] = (LakeError, OSError, *others)
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has closed the pipe, which is not an error
    except expected as error:
        click.echo(f"error: {describe_error(error)}", err=True)
        sys.exit(EXIT_DATA)
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # what DuckDB raises at Ctrl-C
            raise KeyboardInterrupt from None
        raise


def describe_error(error: Exception) -> str:
    """Return the text of an error; an OS error begins with its file and ends with advice."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        advice = advise(error)
        return place + error.strerror + (f"; {advice}" if advice else "")
    return str(error)


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless it is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on stderr, which shows nothing if that is no terminal."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not console.is_terminal)


@contextmanager
def show_progress(noun: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar if stderr is a terminal."""
    with progress_bar(TextColumn(noun), BarColumn(), MofNCompleteColumn()) as bar:
        task = bar.add_task(noun, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_answer(batches: pa.RecordBatchReader, output_format: str, path: Path | None) -> None:
    """Write rows as a table, CSV, JSON or Parquet to a file, or to stdout."""
    if output_format == "parquet":
        with path.open("wb") if path else nullcontext(sys.stdout.buffer) as stream:
            write_parquet(batches, stream)
        return
    with path.open("w", encoding="utf-8") if path else nullcontext(sys.stdout) as text:
        if output_format != "table":
            TEXT_WRITERS[output_format](batches, text)
            return
        count = write_table(batches, text, TABLE_ROWS)
    if count > TABLE_ROWS:
        shown = f"{TABLE_ROWS:,} of {count:,} rows"
        click.echo(f"{shown} shown; --format csv or json writes all", err=True)


def fill_template(package: str, name: str, **values: object) -> str:
    """Return a text of a package's folder ``templates`` with values, without its last newline."""
    # Few commands write a document.
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(),  # of HTML alone
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["json"] = json.dumps
    environment.filters["count"] = count_noun
    return environment.get_template(name).render(values).removesuffix("\n")
