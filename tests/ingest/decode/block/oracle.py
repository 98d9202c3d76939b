"""Decodes a transaction with another implementation (pytoniq-core) for comparison."""

import json
from typing import Any

from pytoniq_core import Address, Cell, Slice, Transaction
from pytoniq_core.tlb.transaction import InternalMsgInfo, MessageAny

from tonlake.lake.schema import TRANSACTIONS

Row = dict[str, Any]

_KINDS = {"ordinary": "ord"}
_STATUSES = {"uninitialized": "uninit"}
_PHASE_NAMES = TRANSACTIONS.names[TRANSACTIONS.names.index("descr") : -1]
_COMPUTE = (
    "success",
    "msg_state_used",
    "account_activated",
    "gas_fees",
    "gas_used",
    "gas_limit",
    "gas_credit",
    "mode",
    "exit_code",
    "exit_arg",
    "vm_steps",
)
_ACTION = (
    "success",
    "valid",
    "no_funds",
    "total_fwd_fees",
    "total_action_fees",
    "result_code",
    "result_arg",
    "tot_actions",
    "spec_actions",
    "skipped_actions",
    "msgs_created",
)


def read_transaction(data: bytes) -> tuple[Row, list[Row]]:
    """Return the other implementation's columns of the transaction and its messages."""
    cell = Cell.one_from_boc(data)
    read = Transaction.deserialize(cell.begin_parse())
    messages = [_read_message(message, "in", 0) for message in [read.in_msg] if message]
    messages += [_read_message(message, "out", at) for at, message in enumerate(read.out_msgs)]
    raw = cell.refs[0].begin_parse()
    stored = [raw.load_ref().hash] if raw.load_bit() else []
    outs = raw.load_dict(15, value_deserializer=lambda src: src.load_ref().hash) or {}
    for message, msg_hash in zip(messages, stored + [outs[at] for at in sorted(outs)], strict=True):
        message["msg_hash"] = msg_hash
    row = {
        "account": read.account_addr,
        "lt": read.lt,
        "hash": cell.hash,
        "now": read.now,
        "prev_trans_hash": read.prev_trans_hash,
        "prev_trans_lt": read.prev_trans_lt,
        "orig_status": _STATUSES.get(read.orig_status.type_, read.orig_status.type_),
        "end_status": _STATUSES.get(read.end_status.type_, read.end_status.type_),
        "outmsg_cnt": read.outmsg_cnt,
        "in_msg_hash": stored[0] if stored else None,
        "total_fees": read.total_fees.grams,
        "total_fees_extra_currencies": _show_currencies(read.total_fees.other.dict),
        "account_state_hash_before": read.state_update.old_hash,
        "account_state_hash_after": read.state_update.new_hash,
    }
    row |= dict.fromkeys(_PHASE_NAMES) | _read_description(read.description)
    return row, messages


def _show_currencies(amounts: dict[int, int] | None) -> str | None:
    if not amounts:
        return None
    return json.dumps(
        {str(key): str(amounts[key]) for key in sorted(amounts)}, separators=(",", ":")
    )


def _read_description(read: Any) -> Row:
    row: Row = {"descr": _KINDS.get(read.type_, read.type_)}
    for name in ("aborted", "destroyed", "credit_first", "is_tock"):
        if hasattr(read, name):
            row[name] = bool(getattr(read, name))
    storage = read.storage_ph
    if storage:
        row["storage_fees_collected"] = storage.storage_fees_collected
        row["storage_fees_due"] = storage.storage_fees_due
        row["storage_status_change"] = storage.status_change.type_
    credit = getattr(read, "credit_ph", None)
    if credit:
        row["credit_due_fees_collected"] = credit.due_fees_collected
        row["credit"] = credit.credit.grams
        row["credit_extra_currencies"] = _show_currencies(credit.credit.other.dict)
    compute = read.compute_ph
    row["compute_skipped"] = compute.type_ == "skipped"
    if row["compute_skipped"]:
        row["compute_skip_reason"] = compute.reason.type_
    else:
        row |= {f"compute_{name}": getattr(compute, name) for name in _COMPUTE}
        row["compute_vm_init_state_hash"] = compute.vm_init_state_hash
        row["compute_vm_final_state_hash"] = compute.vm_final_state_hash
    if read.action:
        row |= {f"action_{name}": getattr(read.action, name) for name in _ACTION}
        row["action_status_change"] = read.action.status_change.type_
        row["action_list_hash"] = read.action.action_list_hash
        row["action_tot_msg_size_cells"] = read.action.tot_msg_size.cells
        row["action_tot_msg_size_bits"] = read.action.tot_msg_size.bits
    bounce = getattr(read, "bounce", None)
    if bounce:
        row |= {"bounce": bounce.type_}
        if bounce.type_ != "negfunds":
            row["bounce_msg_size_cells"] = bounce.msg_size.cells
            row["bounce_msg_size_bits"] = bounce.msg_size.bits
        for name in ("req_fwd_fees", "msg_fees", "fwd_fees"):
            row[f"bounce_{name}"] = getattr(bounce, name, None)
    return row


def _read_message(read: MessageAny, direction: str, index: int) -> Row:
    info = read.info
    body = read.body
    opcode: Slice = body.begin_parse()
    row: Row = {
        "direction": direction,
        "msg_index": index,
        "msg_hash": b"",
        "body_hash": body.hash,
        "opcode": opcode.load_int(32) if len(body.bits) >= 32 and body.type_ == -1 else None,
        "init_state_hash": read.init.serialize().hash if read.init else None,
        "kind": "int" if read.is_internal else "ext_in" if read.is_external else "ext_out",
    }
    for name, end in (("source", info.src), ("destination", info.dest)):
        is_std = isinstance(end, Address)
        row[name] = end.hash_part if is_std else None
        row[f"{name}_workchain"] = end.wc if is_std else None
    for name in ("fwd_fee", "created_lt", "created_at", "import_fee"):
        row[name] = getattr(info, name, None)
    for name in ("ihr_disabled", "bounce", "bounced"):
        row[name] = getattr(info, name, None)
    row["value"] = getattr(info, "value_coins", None)
    row["value_extra_currencies"] = (
        _show_currencies(info.value.other.dict) if isinstance(info, InternalMsgInfo) else None
    )
    row["field_x"] = getattr(info, "ihr_fee", None)
    return row
