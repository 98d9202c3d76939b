"""Spark and object storage, in a separate process: Java reads its environment at start.

``python -m tests.ingest.spark.storage NODE LAKE URL JARS`` ingests a node with Spark, exports the
lake to a URL, and compares every table and every named query there with the local lake.
"""

import re
import sys
from pathlib import Path

import click

from tests.commands import run
from tests.lake.opened import open_views
from tests.queries.spark.questions import Questions
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES
from tonlake.lake.spark.tables import SparkLake, open_lake, open_session
from tonlake.queries.loader import load_queries, needs_duckdb
from tonlake.queries.reader import Reader
from tonlake.queries.spark.reader import SparkReader

NAMES = sorted(name for name, query in load_queries().items() if not needs_duckdb(query))


def compare_tables(here: SparkLake, there: SparkLake) -> int:
    """Return the row counts of all tables; they must be the same in both lakes."""
    count = 0
    for name in TABLES:
        rows = sorted(map(repr, here.read(name).toArrow().to_pylist()))
        assert sorted(map(repr, there.read(name).toArrow().to_pylist())) == rows, name
        count += len(rows)
    return count


def compare_answers(here: Reader, there: SparkReader, questions: Questions) -> int:
    """Return the row counts of named queries; report all that differ from the local lake."""
    count = 0
    different: list[str] = []
    for name in NAMES:
        query = load_queries()[name]
        answers = [reader.rows(name, **questions.required(query)) for reader in (here, there)]
        if re.search(r"^order by", query.sql, re.MULTILINE) is None:
            answers = [sorted(rows, key=lambda row: repr(sorted(row.items()))) for rows in answers]
        if answers[0] != answers[1]:
            different.append(f"{name}: {answers[0][:1]} here, {answers[1][:1]} there")
        count += len(answers[0])
    assert not different, "\n".join(different)
    return count


def main(node: Path, lake: Path, url: str, jars: Path) -> None:
    """Ingest, export, compare."""
    master = "local[2]"
    conf = {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.sql.shuffle.partitions": "1",
    }
    words = ["--node", str(node), "--lake", str(lake), "--to", url, "--master", master]
    # Java starts once per process, and reads the list of jars at start.
    words += [word for pair in conf.items() for word in ("--conf", "=".join(pair))]
    done = run("spark", "ingest", *words)
    assert done.exit_code == 0, done.output
    click.echo(done.output)
    snapshot = open_snapshot(lake)
    connection = connect(snapshot)
    here = Reader(snapshot, open_views(snapshot))
    with open_session(master, conf) as session:
        there = open_lake(session, url)
        rows = compare_tables(open_lake(session, str(lake)), there)
        answers = compare_answers(here, SparkReader(there), Questions(connection))
    click.echo(f"{rows} rows of tables and {answers} rows of {len(NAMES)} answers are the same")
    assert min(rows, answers) > 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
