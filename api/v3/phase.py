"""The description of a transaction: each phase from its columns, absent ones left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET, UnsetType

from api.encoding import decode_currencies, encode_account, encode_bytes
from api.v3 import model

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]
T = TypeVar("T")


class _Fields(dict[str, "tuple[str, Callable[[Any], Any] | None]"]):
    """Field name to its column and how it is written; None writes the value as it is."""

    def __init__(self, prefix: str, **writers: Callable[[Any], Any] | None) -> None:
        """Take fields whose column is ``prefix`` and the field's name."""
        super().__init__({name: (prefix + name, write) for name, write in writers.items()})


_FLAGS = _Fields("", aborted=None, destroyed=None, credit_first=None, is_tock=None, installed=None)
_STORAGE = _Fields("", storage_fees_collected=str, storage_fees_due=str)
_STORAGE["status_change"] = ("storage_status_change", None)
_CREDIT = _Fields("credit_", due_fees_collected=str)
_CREDIT["credit"] = ("credit", str)
_COMPUTE = _Fields(
    "compute_",
    skipped=None,
    success=None,
    msg_state_used=None,
    account_activated=None,
    gas_fees=str,
    gas_used=str,
    gas_limit=str,
    gas_credit=str,
    mode=None,
    exit_code=None,
    exit_arg=None,
    vm_steps=None,
    vm_init_state_hash=encode_bytes,
    vm_final_state_hash=encode_bytes,
)
_COMPUTE["reason"] = ("compute_skip_reason", None)
_ACTION = _Fields(
    "action_",
    success=None,
    valid=None,
    no_funds=None,
    status_change=None,
    total_fwd_fees=str,
    total_action_fees=str,
    result_code=None,
    result_arg=None,
    tot_actions=None,
    spec_actions=None,
    skipped_actions=None,
    msgs_created=None,
)
_ACTION["action_list_hash"] = ("action_list_hash", encode_bytes)
_BOUNCE = _Fields("bounce_", req_fwd_fees=str, msg_fees=str, fwd_fees=str)
_SPLIT = _Fields("split_info_", cur_shard_pfx_len=None, acc_split_depth=None)


def render_description(row: Row) -> model.TransactionDescr:
    """Return the description of one row of ``transactions``."""
    return _build(
        model.TransactionDescr,
        row,
        _FLAGS,
        type=row["descr"],
        storage_ph=_render_storage(row),
        credit_ph=_render_credit(row),
        compute_ph=_render_compute(row),
        action=_render_action(row),
        bounce=_render_bounce(row),
        split_info=_render_split(row),
    )


def _build(kind: Callable[..., T], row: Row, fields: _Fields, **more: object) -> T:
    """Make a struct of the columns that are not NULL, and of what else is given."""
    for name, (column, write) in fields.items():
        value = row[column]
        if value is not None:
            more[name] = value if write is None else write(value)
    return kind(**more)


def _render_storage(row: Row) -> model.StoragePhase | UnsetType:
    if row["storage_status_change"] is None:
        return UNSET
    return _build(model.StoragePhase, row, _STORAGE)


def _render_credit(row: Row) -> model.CreditPhase | UnsetType:
    currencies = decode_currencies(row["credit_extra_currencies"]) or UNSET
    if (row["credit"], row["credit_due_fees_collected"], currencies) == (None, None, UNSET):
        return UNSET
    return _build(model.CreditPhase, row, _CREDIT, credit_extra_currencies=currencies)


def _render_compute(row: Row) -> model.ComputePhase | UnsetType:
    if row["compute_skipped"] is None:
        return UNSET
    return _build(model.ComputePhase, row, _COMPUTE)


def _render_action(row: Row) -> model.ActionPhase | UnsetType:
    if row["action_success"] is None:
        return UNSET
    return _build(model.ActionPhase, row, _ACTION, tot_msg_size=_render_size(row, "action_tot"))


def _render_bounce(row: Row) -> model.BouncePhase | UnsetType:
    if row["bounce"] is None:
        return UNSET
    size = _render_size(row, "bounce")
    return _build(model.BouncePhase, row, _BOUNCE, type=row["bounce"], msg_size=size)


def _render_size(row: Row, prefix: str) -> model.MessageSize | UnsetType:
    cells, bits = row[f"{prefix}_msg_size_cells"], row[f"{prefix}_msg_size_bits"]
    return UNSET if cells is None else model.MessageSize(cells=str(cells), bits=str(bits))


def _render_split(row: Row) -> model.SplitInfo | UnsetType:
    if row["split_info_cur_shard_pfx_len"] is None:
        return UNSET
    addresses = {
        name: encode_account(row["workchain"], row[f"split_info_{name}"])
        for name in ("this_addr", "sibling_addr")
    }
    return _build(model.SplitInfo, row, _SPLIT, **addresses)
