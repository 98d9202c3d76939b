"""The schema as a dbt source file, for models over ``catalog.duckdb``.

Attach the catalogue under the name ``tonlake`` (dbt-duckdb: ``attach`` in the profile); then
``{{ source('tonlake', 'transactions') }}`` is the view of that table.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tonlake.lake.duck.connection import PARTITION, VIEW_NAMES
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.lake.schema import Table

SOURCE = "tonlake"


def render_dbt() -> str:
    """Return the source file as YAML: each view with its columns, those never NULL tested."""
    lines = [
        "version: 2",
        "",
        "sources:",
        f"  - name: {SOURCE}",
        f"    database: {SOURCE}",
        "    schema: main",
        "    tables:",
    ]
    for table in TABLES.values():
        lines += _render_table(table)
    return "\n".join(lines)


def _render_table(table: Table) -> Iterator[str]:
    yield f"      - name: {VIEW_NAMES.get(table.name, table.name)}"
    yield f"        description: {json.dumps(table.doc)}"
    yield "        columns:"
    for column in table.columns:
        yield f"          - name: {column.name}"
        yield f"            description: {json.dumps(column.doc)}"
        if not column.nullable:
            yield "            data_tests: [not_null]"
    yield f"          - name: {PARTITION}"
    yield '            description: "UTC day of the masterchain block"'
