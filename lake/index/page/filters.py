"""Filters of messages as column bounds, which exclude messages before they are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.lake.index.segment.segment import Filter

EXTERNAL: Filter = ("created_lt", None, None)
"""Messages without a creation time."""

_CREATED: Filter = ("created_lt", 0, NO_LT)


def list_filters(asked: Mapping[str, Any]) -> tuple[Filter, ...]:
    """Return all filters except hashes and direction; parameters may be missing."""
    found: list[Filter] = []
    for end in ("source", "destination"):
        account, workchain = asked.get(end), asked.get(f"{end}_workchain")
        if account is not None:
            found += [(end, account, account), (f"{end}_workchain", workchain, workchain)]
        if asked.get(f"no_{end}"):
            found.append((end, None, None))
    for column in ("opcode", "body_hash"):
        value = asked.get(column)
        if value is not None:
            found.append((column, value, value))
    if asked.get("exclude_externals"):
        found.append(_CREATED)
    if asked.get("only_externals"):
        found.append(EXTERNAL)
    for unit, column in (("lt", "created_lt"), ("utime", "created_at")):
        first, last = asked.get(f"start_{unit}"), asked.get(f"end_{unit}")
        if (first, last) != (None, None):
            found.append((column, 0 if first is None else first, NO_LT if last is None else last))
    return tuple(found)


def fits(line: Any, filters: Iterable[Filter]) -> bool:  # noqa: ANN401 - a message
    """Whether a decoded message passes the filters."""
    return all(_is_within(line[column], low, high) for column, low, high in filters)


def _is_within(value: Any, low: Any, high: Any) -> bool:  # noqa: ANN401 - of a column
    if value is None or low is None:
        return value is low
    return bool(low <= value <= high)
