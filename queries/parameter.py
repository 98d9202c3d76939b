"""Parses the values of a query's parameters, as users write them."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime

from tonlake.lake.account import normalize_address
from tonlake.lake.duck.statement import quote
from tonlake.queries.errors import ParameterMismatch
from tonlake.queries.loader import REQUIRED, NamedQuery, Parameter

_WORDS = {"true": True, "false": False}
_READERS: dict[str, Callable[[str], object]] = {
    "boolean": _WORDS.__getitem__,
    "blob": bytes.fromhex,
    "text": str,
    "date": date.fromisoformat,
    "address": normalize_address,
}
"""Parser of each type; all other types are integers."""

_FORMS = {
    "boolean": "true or false",
    "blob": "hex digits",
    "date": "a UTC day such as 2026-11-21",
    "timestamp": "a time such as 2026-11-21 or 2026-11-21T04:20:00, UTC without a zone",
    "address": "an address: workchain:64 hex digits, or 48 characters whose checksum is right",
}
"""Syntax of each type, for error messages; all other types are integers."""


def read_parameters(query: NamedQuery, options: Mapping[str, str]) -> dict[str, object]:
    """Parse values; ``null`` is NULL, bytes are hex, lists have commas, times are in UTC."""
    unknown = sorted(options.keys() - query.parameters.keys())
    if unknown:
        known = ", ".join(query.parameters) or "none"
        raise ParameterMismatch(f"query {query.name} takes no {unknown[0]!r}; it takes: {known}")
    return {name: _read(query.parameters[name], text) for name, text in options.items()}


def advise_narrowing(bound: Mapping[str, object]) -> str:
    """Return advice for a query that took too long: the range parameters that would narrow it."""
    spans = [("start_utime", "end_utime"), ("start_lt", "end_lt"), ("mc_seqno",)]
    left = [
        " and ".join(span) for span in spans if all(bound.get(name, 0) is None for name in span)
    ]
    return f": narrow it by {', or '.join(left)}" if left else ""


def read_values(query: NamedQuery, values: Mapping[str, object]) -> dict[str, object]:
    """Return values of any type, parsing text if the parameter is not text."""
    texts = {name for name, parameter in query.parameters.items() if parameter.type == "text"}
    written = {
        name: text for name, text in values.items() if isinstance(text, str) and name not in texts
    }
    others = {name: value for name, value in values.items() if name not in written}
    return read_parameters(query, written) | others


def _read(parameter: Parameter, text: str) -> object:
    if text == "null":
        return None
    element = parameter.type.removesuffix("[]")
    try:
        if element == parameter.type:
            return _read_one(element, text)
        return [_read_one(element, item.strip()) for item in text.split(",") if item.strip()]
    except (ValueError, KeyError) as error:
        form = _FORMS.get(element, "an integer")
        listed = "" if element == parameter.type else ", several with commas between them"
        raise ParameterMismatch(
            f"parameter {parameter.name}={text[:80]}: expected {form}{listed}"
        ) from error


def _read_one(kind: str, text: str) -> object:
    if kind == "timestamp":
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return _READERS.get(kind, int)(text)


_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$"""
    r"|\$(?P<name>[A-Za-z]\w*)",
    re.DOTALL,
)
"""Tokens that may contain a dollar sign (strings, names, comments), and parameters."""


def bind_parameters(query: NamedQuery, parameters: Mapping[str, object]) -> dict[str, object]:
    """Complete ``parameters`` with the defaults of the query's header."""
    bound = {**query.defaults, **parameters}
    if len(bound) == len(query.defaults) and REQUIRED not in bound.values():
        return bound
    missing = sorted(name for name, value in bound.items() if value is REQUIRED)
    unknown = sorted(bound.keys() - query.defaults.keys())
    faults = [f"needs {', '.join(missing)}"] * bool(missing)
    faults += [f"takes no {', '.join(unknown)}"] * bool(unknown)
    raise ParameterMismatch(f"query {query.name} {' and '.join(faults)}")


def fill_query(query: NamedQuery, values: Mapping[str, object]) -> str:
    """Return the statement of a query with a literal for each parameter."""
    written = {
        name: f"({write_literal(value)})::{query.parameters[name].type}"
        for name, value in bind_parameters(query, values).items()
    }
    return _fill(query.sql, written)


def put_values(statement: str, values: Mapping[str, object]) -> str:
    """Return a statement with a literal for each parameter that has a value."""
    return _fill(statement, {name: write_literal(value) for name, value in values.items()})


def _fill(statement: str, written: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda match: written.get(match["name"] or "", match[0]), statement)


def write_literal(value: object) -> str:
    """Return a parameter value as a DuckDB literal."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"from_hex({quote(value.hex())})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_literal, value))}]"
    if isinstance(value, str | date):  # a datetime is a date
        return quote(str(value))
    return str(value).lower()
