"""Actions in the form of version 3: common fields, and the details of their type."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET

from tonlake.api.text.encoding import encode_bytes, encode_number
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Base64, Column, Decimal, Kind, Omitted
from tonlake.ingest.derive.action.body import read_body, read_comment
from tonlake.ingest.errors import BocError
from tonlake.lake.schema.action_type import CURRENCY_TRANSFER
from tonlake.queries.reader import Row

_FIELDS_FILE = "actions.txt"
_NEVER, _SPECIAL = "-", "*"
_OPTIONAL = "?"
_REQUEST = "parent_gasless_action"
FINALIZED = "finalized"


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


class Detail(NamedTuple):
    """One field of the details: its name, its kind, the source of its value, when it is shown."""

    name: str
    kind: str
    place: str
    is_optional: bool


@cache
def load_fields() -> Mapping[str, tuple[Detail, ...]]:
    """Return the fields of the details by action type, from the packaged table."""
    text = files("tonlake.api.v3.resource").joinpath(_FIELDS_FILE).read_text(encoding="utf-8")
    fields: dict[str, tuple[Detail, ...]] = {}
    types: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            types = line.split(", ")
            fields |= dict.fromkeys(types, ())
            continue
        name, kind, place = line.split()
        field = Detail(name.rstrip(_OPTIONAL), kind, place, name.endswith(_OPTIONAL))
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
    if kind == CURRENCY_TRANSFER:  # it keeps the details of its own type
        shape = "ton_transfer" if "ton_transfer_data" in parts else "call_contract"
    fields = load_fields().get(shape)
    if fields is None:
        return {"error": f"unsupported action type: '{kind}'"}
    details: Row = {}
    for field in fields:
        if field.place == _SPECIAL:
            details |= SPECIAL[field.name](row, parts)
            continue
        value, form = _find(row, parts, field.place), _FORMS.get(field.kind)
        if form is not None:
            value = form(value)
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
    """Return the value of a column, of an object in ``details``, or of a field of one."""
    if place == _NEVER:
        return None
    group, dot, name = place.rpartition(".")
    if not dot:
        return row[name]
    return (parts.get(group) or {}).get(name) if name else parts.get(group)


_TRANSFER = (
    *("asset", "source", "destination", "source_jetton_wallet", "destination_jetton_wallet"),
    "amount",
)
_HOP = ("asset_in", "amount_in", "asset_out", "amount_out")
_AMOUNTS = frozenset(("amount", "amount_in", "amount_out"))


def _pick(found: Row, names: Sequence[str]) -> Row:
    """Return fields of an object; those of amounts are text."""
    find = found.get
    return {name: encode_number(find(name)) if name in _AMOUNTS else find(name) for name in names}


_FORMS: dict[str, Callable[[Any], object]] = {
    "text": encode_number,
    "opcode": lambda opcode: None if opcode is None else f"0x{opcode:08x}",
    "map": lambda text: json.loads(text) if text else {},
    "transfer": lambda found: _pick(found or {}, _TRANSFER),
    "hops": lambda found: [_pick(each, _HOP) for each in found or ()],
    "excesses": lambda found: [_pick(each, ("asset", "amount")) for each in found or ()],
    "is_ton": lambda asset_id: asset_id == _TON_ASSET_ID,
}
"""How values of some kinds are shown, also those that are missing."""

_DNS_FIELDS = (
    *("dns_smc_address", "dns_adnl_address", "dns_text", "dns_next_resolver_address"),
    "dns_storage_address",
)
_DNS_FIELD_OF = {
    "DNSSmcAddress": "dns_smc_address",
    "DNSAdnlAddress": "dns_adnl_address",
    "DNSNextResolver": "dns_next_resolver_address",
}
"""All other records, also text, go to ``dns_storage_address``, as in TON Center."""

_TON_ASSET_ID = "0x1a4219fe5e60d63af2a3cc7dce6fec69b45c6b5718497a6148e7c232ac87bd8a"


def _dns_value(_row: Row, parts: Row) -> Row:
    record = parts.get("change_dns_record_data") or {}
    schema = str(record.get("value_schema"))
    value: Row = {"sum_type": record.get("value_schema")} | dict.fromkeys(_DNS_FIELDS)
    value[_DNS_FIELD_OF.get(schema, "dns_storage_address")] = record.get("value")
    return {"value": value | {"flags": record.get("flags")}}


def _destination_liquidity(row: Row, parts: Row) -> Row:
    dex = (parts.get("dex_deposit_liquidity_data") or {}).get("dex")
    name = "destination_secondary" if dex == "dedust" else "destination"
    return {"destination_liquidity": row[name]}


def _min_out_amount(_row: Row, parts: Row) -> Row:
    swap = parts.get("jetton_swap_data") or {}
    shown = {"min_out_amount": encode_number(swap.get("min_out_amount"))}
    return shown if swap.get("dex") == "tonco" else {}


def _nft_comment(_row: Row, parts: Row) -> Row:
    """Return the comment in the forward payload; two Nones if there is no payload."""
    payload = (parts.get("nft_transfer_data") or {}).get("forward_payload")
    comment: tuple[str | None, bool | None] = None, None
    with suppress(BocError):
        if payload is not None:
            comment = read_comment(read_body(base64.b64decode(payload)))
    return {"comment": comment[0], "is_encrypted_comment": comment[1]}


def _source_asset(row: Row, parts: Row) -> Row:
    is_shown = _is_ethena(parts) and row["asset2"] is not None
    return {"source_asset": row["asset2"]} if is_shown else {}


def _tokens_minted(_row: Row, parts: Row) -> Row:
    minted = parts["staking_data"].get("tokens_minted") if _is_ethena(parts) else None
    return {} if minted is None else {"tokens_minted": encode_number(minted)}


def _is_ethena(parts: Row) -> bool:
    return bool((parts.get("staking_data") or {}).get("provider") == "ethena")


def _claimed_rewards(_row: Row, parts: Row) -> Row:
    claim = parts.get("jvault_claim_data") or {}
    jettons, amounts = claim.get("claimed_jettons") or (), claim.get("claimed_amounts") or ()
    if len(jettons) != len(amounts):
        return {"claimed_rewards": []}
    pairs = zip(jettons, amounts, strict=True)
    return {
        "claimed_rewards": [
            {"jetton": jetton, "amount": encode_number(amount)} for jetton, amount in pairs
        ]
    }


SPECIAL: dict[str, Callable[[Row, Row], Row]] = {
    "value": _dns_value,
    "destination_liquidity": _destination_liquidity,
    "min_out_amount": _min_out_amount,
    "comment": _nft_comment,
    "source_asset": _source_asset,
    "tokens_minted": _tokens_minted,
    "claimed_rewards": _claimed_rewards,
}
"""Functions by field name that return additions to the details, from a row and its details."""
