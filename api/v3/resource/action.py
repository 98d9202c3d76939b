"""Actions in the form of version 3: common fields, and the details of their type."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET

from tonlake.api.text.encoding import encode_bytes, encode_number
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Base64, Column, Decimal, Kind, Omitted
from tonlake.api.v3.resource.action_field import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = dict[str, Any]

_FIELDS_FILE = "actions.txt"
_NEVER, _SPECIAL = "-", "*"
_OPTIONAL = "?"
_REQUEST = "parent_gasless_action"
FINALIZED = "finalized"
CURRENCY_TRANSFER = "extra_currency_transfer"
"""Type of transfers and calls with extra currencies, which keep the details of their own type."""


class Action(msgspec.Struct, kw_only=True):
    """An action; ``details`` has the fields of its type."""

    trace_id: Base64
    action_id: Base64
    start_lt: Decimal
    end_lt: Decimal
    start_utime: int
    end_utime: int
    trace_end_lt: Decimal
    trace_end_utime: int
    trace_mc_seqno_end: Annotated[int, Column("mc_seqno")]
    transactions: list[str]
    success: bool
    type: str
    details: Annotated[dict[str, Any], Kind.EXTRA]
    trace_external_hash: Base64 | Omitted = UNSET
    trace_external_hash_norm: (
        Annotated[
            str, Kind.BASE64_UNLESS, Column("trace_external_hash_norm", "trace_external_hash")
        ]
        | Omitted
    ) = UNSET
    accounts: list[str] | Omitted = UNSET
    transactions_full: list[Any] | Omitted = UNSET
    parent_gasless_action: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    finality: str = FINALIZED


class Field(NamedTuple):
    """One field of the details: its name, its kind, the source of its value, when it is shown."""

    name: str
    kind: str
    place: str
    is_optional: bool


@cache
def load_fields() -> Mapping[str, tuple[Field, ...]]:
    """Return the fields of the details by action type, from the packaged table."""
    text = files("tonlake.api.v3.resource").joinpath(_FIELDS_FILE).read_text(encoding="utf-8")
    fields: dict[str, tuple[Field, ...]] = {}
    types: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            types = line.split(", ")
            fields |= dict.fromkeys(types, ())
            continue
        name, kind, place = line.split()
        field = Field(name.rstrip(_OPTIONAL), kind, place, name.endswith(_OPTIONAL))
        for each in types:
            fields[each] = (*fields[each], field)
    return fields


def render_action(row: Row) -> Action:
    """Return the action of a row of ``actions``."""
    return make_builder(Action)(
        (row,),
        transactions=[encode_bytes(tx_hash) for tx_hash in row["tx_hashes"]],
        details=render_details(row),
        parent_gasless_action=_find_request(row) or UNSET,
    )


def render_details(row: Row) -> Row:
    """Return the details of an action, whose fields depend on its type."""
    kind = row["type"]
    if kind == "tick_tock":
        return {}
    parts = json.loads(row["details"] or "{}")
    shape = kind
    if kind == CURRENCY_TRANSFER:
        shape = "ton_transfer" if "ton_transfer_data" in parts else "call_contract"
    fields = load_fields().get(shape)
    if fields is None:
        return {"error": f"unsupported action type: '{kind}'"}
    details: Row = {}
    for field in fields:
        if field.place == _SPECIAL:
            details |= SPECIAL[field.name](row, parts)
            continue
        value = _show(field.kind, _find(row, parts, field.place))
        if value is not None or not field.is_optional:
            details[field.name] = value
    return details


def _find_request(row: Row) -> str | None:
    """Return the base64 id of the gasless request that caused an action."""
    details = row["details"]
    if not details or _REQUEST not in details:
        return None
    request: str | None = json.loads(details).get("extra", {}).get(_REQUEST)
    return request


def _find(row: Row, parts: Row, place: str) -> object:
    """Return the value of a column, or of a field of an object in ``details``."""
    if place == _NEVER:
        return None
    group, _, name = place.rpartition(".")
    if not group:
        return row[name]
    return (parts.get(group) or {}).get(name)


def _show(kind: str, value: Any) -> object:  # noqa: ANN401 - details hold any JSON
    """Return a value formatted by its kind."""
    if kind == "map":
        return json.loads(value) if value else {}
    if value is None:
        return None
    if kind == "text":
        return encode_number(value)
    if kind == "opcode":
        return f"0x{value:08x}"
    return value
