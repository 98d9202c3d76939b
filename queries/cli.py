"""The command ``tonlake query``: runs a named query with DuckDB."""

import json
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec
from click.core import ParameterSource

from tonlake.lake.command.argument import (
    choose_output,
    format_option,
    make_place_option,
    output_option,
    read_pairs,
    snapshot_option,
)
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings, write_answer
from tonlake.lake.duck.remote import open_views
from tonlake.lake.duck.silence import list_notes
from tonlake.lake.log.disk import unfinished
from tonlake.lake.settings import LakeSections
from tonlake.queries.errors import ParameterMismatch, QueryError
from tonlake.queries.loader import REQUIRED, NamedQuery, Parameter, find_query, load_queries
from tonlake.queries.parameter import read_parameters
from tonlake.queries.reader import Reader


@click.command("query")
@click.argument("name", required=False)
@make_place_option(required=False)
@click.option("-p", "--param", "options", multiple=True, metavar="NAME=VALUE", help="A parameter.")
@click.option("--list", "listing", is_flag=True, help="Print the queries and their parameters.")
@json_option
@format_option
@output_option
@snapshot_option
def query_command(
    *,
    name: str | None,
    place: Path | str | None,
    options: tuple[str, ...],
    listing: bool,
    as_json: bool,
    output_format: str,
    output: Path | None,
    snapshot: int | None,
) -> None:
    """Run one of the named queries of queries/: everyday questions, and those of the API."""
    chosen = click.get_current_context().get_parameter_source("output_format")
    if as_json and chosen is not ParameterSource.DEFAULT:
        raise click.UsageError("give --json or --format, not both")
    if listing:
        with failing_cleanly(QueryError):
            queries = [find_query(name)] if name else list(load_queries().values())
        _print_queries(queries, as_json=as_json)
        return
    if name is None or place is None:
        raise click.UsageError("name a query and a --lake, or use --list")
    output_format = "json" if as_json else output_format
    output = choose_output(output, output_format)
    with failing_cleanly(QueryError):
        query = find_query(name)
        values = read_parameters(query, read_pairs(options, "--param"))
        required = {one.name for one in query.parameters.values() if one.default is REQUIRED}
        if lacking := sorted(required - values.keys()):
            raise ParameterMismatch(f"query {query.name} needs -p {lacking[0]}=VALUE")
        with (
            open_views(place, snapshot, read_settings(LakeSections).lake) as (opened, views),
            unfinished(output) if output else nullcontext() as path,
        ):
            found = Reader(opened, views).table(query.name, **values)
            write_answer(found.to_reader(), output_format, path)
            for note in list_notes(opened, query.sql):
                click.echo(note, err=True)


def _print_queries(queries: list[NamedQuery], *, as_json: bool) -> None:
    if as_json:
        described = [
            {
                "name": query.name,
                "doc": query.doc,
                "parameters": [_describe(each) for each in query.parameters.values()],
                "returns": query.returns,
                "chart": query.chart,
            }
            for query in queries
        ]
        click.echo(msgspec.json.encode(described))
        return
    for query in queries:
        click.echo(f"{query.name}: {query.doc}")
        for each in query.parameters.values():
            default = "" if each.default is REQUIRED else f" = {json.dumps(each.default)}"
            click.echo(f"    -p {each.name} ({each.type}{default})  {each.doc}".rstrip())
        click.echo(f"    returns {query.returns}")


def _describe(parameter: Parameter) -> dict[str, object]:
    required = parameter.default is REQUIRED
    described = {"name": parameter.name, "type": parameter.type, "doc": parameter.doc}
    return described | ({"required": True} if required else {"default": parameter.default})


commands: list[click.Command] = [query_command]
