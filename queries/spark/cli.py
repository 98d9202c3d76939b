"""The command ``tonlake spark sql``: runs a named query on Apache Spark."""

from importlib.util import find_spec

import click

from tonlake.lake.command.argument import make_lake_option, read_pairs, spark_options
from tonlake.lake.command.cli import failing_cleanly, write_answer
from tonlake.lake.duck.answer import TEXT_WRITERS
from tonlake.lake.errors import EngineError
from tonlake.lake.spark.tables import open_lake, open_session
from tonlake.queries.errors import QueryError
from tonlake.queries.loader import find_query, load_queries, needs_duckdb
from tonlake.queries.parameter import read_parameters


@click.command("sql")
@click.argument("name", required=False)
@make_lake_option(
    "place", click.STRING, "Folder of the lake, or its URL as Hadoop knows it.", required=False
)
@click.option("-p", "--param", "options", multiple=True, metavar="NAME=VALUE", help="A parameter.")
@click.option("--list", "listing", is_flag=True, help="Print the queries and their parameters.")
@click.option("--translate", is_flag=True, help="Print the query in Spark's SQL, and stop.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", *TEXT_WRITERS]),
    default="table",
    show_default=True,
    help="Format of the output; table shows the first rows only.",
)
@click.option("--to", help="Folder or URL: Spark writes the result there as Parquet.")
@click.option("--snapshot", type=click.IntRange(min=1), help="Number of the commit to query.")
@spark_options
def spark_sql_command(  # noqa: PLR0913 - one for each option
    *,
    name: str | None,
    place: str | None,
    options: tuple[str, ...],
    listing: bool,
    translate: bool,
    output_format: str,
    to: str | None,
    snapshot: int | None,
    master: str,
    conf: tuple[str, ...],
) -> None:
    """Run one of the named queries of queries/ on Apache Spark."""
    if listing:
        _print_queries()
        return
    if name is None or (place is None and not translate):
        raise click.UsageError("name a query and a --lake, or use --list")
    with failing_cleanly(QueryError):
        query = find_query(name)
        parameters = read_parameters(query, read_pairs(options, "--param"))
        if translate or place is None:
            if find_spec("sqlglot") is None:
                raise EngineError("sqlglot is not installed: pip install 'tonlake[spark]'")
            from tonlake.queries.spark import reader  # noqa: PLC0415 - needs an extra

            click.echo(reader.translate(name, **parameters))
            return
        with open_session(master, read_pairs(conf, "--conf")) as session:
            from tonlake.queries.spark.reader import SparkReader  # noqa: PLC0415 - needs an extra

            lake = open_lake(session, place, snapshot)
            frame = SparkReader(lake).ask(name, **parameters)
            if to is None:
                write_answer(frame.toArrow().to_reader(), output_format, None)
            else:
                frame.write.parquet(to)


def _print_queries() -> None:
    for name, query in load_queries().items():
        if needs_duckdb(query):
            continue
        parameters = " ".join(query.parameters)
        click.echo(f"{name}: {query.doc}" + (f"\n    {parameters}" if parameters else ""))
