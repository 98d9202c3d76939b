"""The definition of a scan, shared by HTTP, Python and the command line."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tonlake.api.errors import RequestInvalid

Value = str | int | bool | None
Selection = dict[str, list[Value]]
"""Filter values by column: a row matches if it has one of the values in every column."""

Where = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""Selections as accepted in Python: one or several, with lists of values or single values."""

Position = int | str
"""A masterchain seqno, a time (ISO 8601, UTC without a zone), or ``snapshot:N``."""


Chosen = Annotated[
    list[Selection],
    Meta(
        description="Selections; a row is returned if it matches one of them. A selection has lists"
        " of values by column: in every column the row must have one of the values"
    ),
]
Columns = Annotated[
    list[str],
    Meta(
        description="Columns in order, by default all of the table; those of a joined row with its"
        " name, as transaction.compute_exit_code, trace.trace_id, body.decoded, state.code_hash,"
        " interface.names"
    ),
]


class TableScan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Filters and columns of one of several tables."""

    where: Chosen = []
    columns: Columns = []


class Scan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A scan of one table or several; the fields are those of ``POST /api/scan``."""

    table: Annotated[str | None, Meta(description="Table to read")] = None
    where: Chosen = []
    columns: Columns = []
    tables: Annotated[
        dict[str, TableScan],
        Meta(
            description="Several tables, instead of table, where and columns: a row has mc_seqno,"
            " and under the name of its table an object with the table's columns"
        ),
    ] = {}
    signature: Annotated[
        str | None,
        Meta(
            description="Layout of message bodies that defines tables: TL-B, an ABI of Tact or "
            "Tolk, or the name of a built-in layout"
        ),
    ] = None
    start: Annotated[
        Position | None,
        Meta(
            description="First masterchain block: its seqno, the earliest time (ISO 8601), or"
            " snapshot:N for the block after the last one of commit N; by default the first of"
            " the lake's newest range"
        ),
    ] = msgspec.field(default=None, name="from")
    stop: Annotated[
        Position | None,
        Meta(
            description="Last masterchain block: its seqno, the latest time, or snapshot:N; by"
            " default the newest in the lake, with follow none"
        ),
    ] = msgspec.field(default=None, name="to")
    cursor: Annotated[
        str | None, Meta(description="Cursor of a batch to resume after, instead of from")
    ] = None
    follow: Annotated[bool, Meta(description="Continue with new blocks as they arrive")] = False
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="End with the masterchain block that contains this row"),
    ] = None


_LISTS = (list, tuple, set, frozenset)
_RENAMED = {"start": "from", "stop": "to"}
"""Options in Python whose field has another name, as ``from`` is a keyword."""


def convert_scan(table: str | Mapping[str, Any], options: dict[str, Any]) -> Scan:
    """Return a scan from Python values; single selections and values need no list.

    ``table`` is a name, or maps names of several tables to their ``where`` and ``columns``. Raises
    RequestInvalid if an option does not exist or has a value of the wrong type.
    """
    fields = {
        _RENAMED.get(name, name): value.isoformat() if isinstance(value, datetime) else value
        for name, value in options.items()
        if value is not None
    }
    if isinstance(table, str):
        fields = _list_selections(fields) | {"table": table}
    else:
        fields["tables"] = {name: _list_selections(each) for name, each in table.items()}
    try:
        return msgspec.convert(fields, Scan)
    except msgspec.ValidationError as error:
        raise RequestInvalid(f"invalid scan: {error}") from error


def _list_selections(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``fields`` with ``where`` as a list of selections with lists of values."""
    where = fields.get("where") or []
    listed = [where] if isinstance(where, Mapping) else list(where)
    return {**fields, "where": [_list_values(one) for one in listed]}


def _list_values(selection: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        name: [
            value.hex() if isinstance(value, bytes) else value
            for value in (values if isinstance(values, _LISTS) else [values])
        ]
        for name, values in selection.items()
    }
