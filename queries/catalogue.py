"""The everyday questions as examples: each with its statement as people would write it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from tonlake.queries.loader import Chart, Parameter, load_queries

if TYPE_CHECKING:
    from tonlake.queries.loader import Query

_PARAMETER = re.compile(r"\$([a-z][a-z0-9_]*)")


class Question(msgspec.Struct, frozen=True):
    """One everyday question: ``sql`` runs as it is, with the defaults in place of parameters."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    sql: str
    chart: Chart | None


@cache
def list_questions() -> tuple[Question, ...]:
    """Return every everyday question, by name.

    Raises:
        QueryMalformed: a file of queries/ breaks a rule.
    """
    return tuple(_describe(query) for query in load_queries().values() if query.is_everyday)


def _describe(query: Query) -> Question:
    title, _, description = query.doc.partition(". ")
    return Question(
        name=query.name.rpartition("/")[2],
        title=title.removesuffix("."),
        description=description,
        parameters=tuple(query.parameters.values()),
        sql=_fill_defaults(query),
        chart=query.chart,
    )


def _fill_defaults(query: Query) -> str:
    """Return the statement without its header; a default is written in SQL as it is in JSON."""
    lines = [line for line in query.sql.splitlines() if not line.startswith("--")]
    return _PARAMETER.sub(
        lambda match: msgspec.json.encode(query.defaults[match[1]]).decode(), "\n".join(lines)
    )
