"""The macros as an attached catalogue needs them: each free of calls to the others.

DuckDB looks the functions that a macro calls up in the schemas of the caller, so that those of a
catalogue attached as ``tonlake`` are not found: ``tonlake.ton_friendly(…)`` would fail.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import duckdb

from tonlake.lake.duck.connection import read_macros

_MACRO = re.compile(r"create or replace macro (\w+)\((.*?)\) as( table)?\n(.*?);\n", re.DOTALL)
_DEFAULT = re.compile(r"\s*:=.*")

Node = Any
"""A part of a parsed statement, as DuckDB's JSON."""


@cache
def read_flat_macros() -> str:
    """Return the statements that create every macro, with calls of scalar ones replaced."""
    known: dict[str, tuple[list[str], Node]] = {}
    with duckdb.connect() as connection:

        def flatten(match: re.Match[str]) -> str:
            name, parameters, table, body = match.groups()
            start = "" if table else "select "
            text = connection.execute("select json_serialize_sql($1)", [start + body]).fetchall()
            tree = json.loads(text[0][0])
            flat = _replace_calls(tree, known)
            if not table:
                names = [_DEFAULT.sub("", part).strip() for part in parameters.split(",")]
                known[name] = names, flat["statements"][0]["node"]["select_list"][0]
            if flat == tree:
                return match[0]
            written = connection.execute("select json_deserialize_sql($1)", [json.dumps(flat)])
            body = written.fetchall()[0][0].removeprefix("SELECT " if not table else "")
            return f"create or replace macro {name}({parameters}) as{table or ''}\n{body};\n"

        return _MACRO.sub(flatten, read_macros())


def _replace_calls(node: Node, known: dict[str, tuple[list[str], Node]]) -> Node:
    """Return a tree in which no macro of ``known`` is called."""
    if isinstance(node, list):
        return [_replace_calls(part, known) for part in node]
    if not isinstance(node, dict):
        return node
    node = {key: _replace_calls(part, known) for key, part in node.items()}
    if node.get("class") != "FUNCTION" or node["function_name"] not in known:
        return node
    names, body = known[node["function_name"]]
    given = [argument["expression"] for argument in node["arguments"]]
    return _fill(body, dict(zip(names, given, strict=True))) | {"alias": node["alias"]}


def _fill(node: Node, values: dict[str, Node]) -> Node:
    """Return a tree with values in the place of parameters."""
    if isinstance(node, list):
        return [_fill(part, values) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
        return values.get(node["column_names"][0], node)
    return {key: _fill(part, values) for key, part in node.items()}
