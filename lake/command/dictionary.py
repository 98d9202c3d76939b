"""Renders the data dictionary as Markdown, as JSON, and as a dbt source file.

The dbt source is over ``catalog.duckdb``: with dbt-duckdb, attach the catalogue under the name
``tonlake`` (``attach`` in the profile), and ``{{ source('tonlake', 'transactions') }}`` is a view.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tonlake.lake.duck.connection import VIEWED_TABLES
from tonlake.lake.duck.own import OwnState, OwnTable
from tonlake.lake.file.rows import PARTITION
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.schema.block import BLOCKS
from tonlake.lake.schema.column import Column
from tonlake.lake.schema.view import REFERENCE_TABLES
from tonlake.lake.schema.view_catalogue import VIEWS

OwnTables = Sequence[tuple[OwnTable, OwnState]]


def render_markdown(own: OwnTables = ()) -> str:
    """Return the data dictionary as Markdown, a section per table, user-defined tables last."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}.",
        "Every table also has the partition column `day`: UTC day of the masterchain block.",
        "",
        "In a pruned lake, rows with `mc_seqno` before its first block are kept rows: rows that",
        "later blocks build on, such as the newest state of every account. Their `day` is that of",
        "the last pruned block, and other rows of their blocks are missing.",
        "",
    ]
    for table in TABLES.values():
        lines += [f"## {table.name}", "", table.doc, ""]
        lines += [f"Key: {_names(table.key)}. Sorted by {_names(table.sort)}.", ""]
        lines += ["| column | type | NULL | description |", "|---|---|---|---|"]
        lines += [
            f"| `{column.name}` | {column.type} | {'yes' if column.nullable else 'no'} "
            f"| {column.doc} |"
            for column in table.columns
        ]
        lines.append("")
    lines += [
        "# Views for people",
        "",
        "Over the tables above, in DuckDB: readable names, times and amounts. An address is raw",
        "text, followed by its workchain and account id. Any column may be NULL.",
        "",
    ]
    for view in (*VIEWS.values(), *REFERENCE_TABLES):
        lines += [f"## {view.title}", "", view.doc, ""]
        lines += ["| column | type | description |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {column.type} | {column.doc} |" for column in view.columns]
        lines.append("")
    if own:
        lines += ["# User-defined tables", ""]
    for own_table, state in own:
        lines += [f"## {own_table.name}", "", describe_own(own_table), ""]
        lines += ["```sql", own_table.sql.strip(), "```", "", "| column | type |", "|---|---|"]
        lines += [f"| `{column.name}` | {column.type} |" for column in state.columns]
        lines.append("")
    return "\n".join(lines)


def describe_own(table: OwnTable) -> str:
    """Describe a user-defined table in a sentence."""
    return f"User-defined table: a statement run over the rows of each {table.per}."


def render_json(own: OwnTables = ()) -> str:
    """Return the schema as JSON: version, tables with key, order and columns, and views."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tables": list(TABLES.values()),
        "views": [*VIEWS.values(), *REFERENCE_TABLES],
        "own_tables": [
            {**msgspec.to_builtins(table), "columns": state.columns} for table, state in own
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


SOURCE = "tonlake"

_FRESHNESS = "{warn_after: {count: 1, period: hour}}"

_DAY = Column(PARTITION, "date", "UTC day of the masterchain block", nullable=True)


def render_dbt(own: OwnTables = ()) -> str:
    """Return the source file as YAML: each view with its columns, their tests, and freshness."""
    lines = [
        "version: 2",
        "",
        "sources:",
        f"  - name: {SOURCE}",
        f"    database: {SOURCE}",
        "    schema: main",
        "    tables:",
    ]
    for view, table in VIEWED_TABLES.items():
        lines += _render_table(view, table.doc, (*table.columns, _DAY))
    for shown in VIEWS.values():
        if not shown.parameters:
            lines += _render_table(shown.name, shown.doc, shown.columns)
    for own_table, state in own:
        lines += _render_head(own_table.name, describe_own(own_table))
        lines += [f"          - name: {column.name}" for column in state.columns]
    return "\n".join(lines)


def _render_table(name: str, doc: str, columns: Iterable[Column]) -> Iterator[str]:
    yield from _render_head(name, doc)
    for column in columns:
        yield f"          - name: {column.name}"
        yield f"            description: {json.dumps(column.doc)}"
        tests = [] if column.nullable else ["not_null"]
        if column.values:
            values = {"arguments": {"values": column.values}}
            tests.append(json.dumps({"accepted_values": values}))
        if tests:
            yield f"            data_tests: [{', '.join(tests)}]"


def _render_head(name: str, doc: str) -> Iterator[str]:
    yield f"      - name: {name}"
    yield f"        description: {json.dumps(doc)}"
    if name == BLOCKS.name:  # dbt source freshness
        time = "make_timestamp(gen_utime * 1000000)"
        yield f"        config: {{loaded_at_field: {time}, freshness: {_FRESHNESS}}}"
    yield "        columns:"
