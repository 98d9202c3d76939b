"""Render the data dictionary as Markdown and JSON."""

from __future__ import annotations

import msgspec

from tonlake.lake.schema import SCHEMA_VERSION, TABLES


def render_markdown() -> str:
    """Return the data dictionary as Markdown, a section per table."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}.",
        "Every table also has the partition column `day`: UTC day of the masterchain block.",
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
    return "\n".join(lines)


def render_json() -> str:
    """Return the schema as JSON: version, and tables with key, order and columns."""
    document = {"schema_version": SCHEMA_VERSION, "tables": list(TABLES.values())}
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in columns)
