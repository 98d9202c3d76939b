"""The layouts of transactions and messages: what ``transaction``, ``phase`` and ``message`` say."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from api.encoding import decode_currencies
from api.native import NATIVE
from api.v3.layout import (
    NULL,
    Field,
    Kind,
    compile_layout,
    field,
    fields,
    make_record_writer,
    make_writer,
)
from api.v3.message import render_content, write_body
from api.v3.transaction import NONEXIST_HASH
from ingest.body.body import name_opcode
from ingest.body.scheme import load_scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Row = dict[str, Any]

_EMPTY = b"{}"
_UNKNOWN = {
    **dict.fromkeys(
        ("balance", "extra_currencies", "account_status", "frozen_hash", "data_hash", "code_hash")
    ),
    "extra_currencies": "null",
}
_NONEXIST = {**_UNKNOWN, "balance": 0, "extra_currencies": "{}", "account_status": "nonexist"}


class _Sources(NamedTuple):
    """What one transaction is written from, in the order in which layouts number it."""

    row: Any
    in_message: Any
    out_messages: Sequence[Any]
    before: Any
    after: Any


def find_writer(opcode_format: str) -> Callable[..., bytes] | None:
    """Return what writes a transaction as ``render_transaction`` does; None without the extension.

    It takes a row, its messages, and all known states.
    """
    if NATIVE is None:
        return None
    write = _make_writer(opcode_format)

    def write_transaction(
        row: Row, messages: Iterable[Row], states: Mapping[tuple[int, bytes, bytes], Row]
    ) -> bytes:
        listed = sorted(messages, key=itemgetter("msg_index"))
        incoming = [message for message in listed if message["direction"] == "in"]
        sources = _Sources(
            row,
            incoming[0] if incoming else None,
            [message for message in listed if message["direction"] != "in"],
            _find_state(row, "account_state_hash_before", states),
            _find_state(row, "account_state_hash_after", states),
        )
        return write(tuple(sources))

    return write_transaction


def find_record_writer(
    opcode_format: str,
) -> Callable[[Iterable[Any]], tuple[list[bytes], set[tuple[int, bytes]]]] | None:
    """Return what writes transactions from their records, as ``find_writer`` does from their parts.

    It returns them with the accounts, by workchain and id, that belong into their address book.
    """
    if NATIVE is None:
        return None
    write = _make_record_writer(opcode_format)

    def write_records(records: Iterable[Any]) -> tuple[list[bytes], set[tuple[int, bytes]]]:
        named: set[tuple[int, bytes]] = set()
        return write(list(records), named), named

    return write_records


def _find_state(
    row: Row, column: str, states: Mapping[tuple[int, bytes, bytes], Row]
) -> Mapping[str, Any]:
    state_hash = row[column]
    if state_hash == NONEXIST_HASH:
        return _NONEXIST
    found: Mapping[str, Any] = states.get((row["workchain"], row["account"], state_hash), _UNKNOWN)
    return found


@cache
def _make_writer(opcode_format: str) -> Callable[..., bytes]:
    return make_writer(_lay_out_transaction(opcode_format))


@cache
def _make_record_writer(
    opcode_format: str,
) -> Callable[[list[Any], set[tuple[int, bytes]]], list[bytes]]:
    return make_record_writer(
        _lay_out_transaction(opcode_format), (NONEXIST_HASH, _NONEXIST), _UNKNOWN
    )


def _lay_out_transaction(opcode_format: str) -> object:
    received, sent = (_lay_out_message(opcode_format, end) for end in ("source", "destination"))
    return compile_layout(
        field(Kind.NAMED_ACCOUNT, "account", "workchain", other="account"),
        *fields(Kind.BASE64, "hash prev_trans_hash"),
        *fields(Kind.TEXT_NUMBER, "lt prev_trans_lt total_fees"),
        field(Kind.NUMBER, "now"),
        field(Kind.NUMBER, "mc_block_seqno", "mc_seqno", missing=NULL),
        *fields(Kind.TEXT, "orig_status end_status"),
        field(Kind.JSON, "total_fees_extra_currencies", missing=_EMPTY),
        field(Kind.OBJECT, "description", ("descr",), other=_lay_out_description()),
        field(Kind.OBJECT, "block_ref", ("block_seqno",), missing=NULL, other=_lay_out_block()),
        field(Kind.OBJECT, "in_msg", source=1, missing=NULL, other=received),
        field(Kind.LIST, "out_msgs", source=2, other=sent),
        *(
            field(
                Kind.OBJECT,
                f"account_state_{when}",
                source=source,
                other=_lay_out_state(f"account_state_hash_{when}"),
            )
            for source, when in ((3, "before"), (4, "after"))
        ),
        field(Kind.BASE64, "trace_id"),
        Field(Kind.CONSTANT, -1, None, b'"emulated":false,"finality":"finalized"', None, None),
    )


def _lay_out_block() -> object:
    return compile_layout(
        field(Kind.NUMBER, "workchain"),
        field(Kind.SHARD, "shard", missing=NULL),
        field(Kind.NUMBER, "seqno", "block_seqno"),
    )


def _lay_out_state(hash_column: str) -> object:
    return compile_layout(
        field(Kind.BASE64, "hash", hash_column, source=0),
        field(Kind.TEXT_NUMBER, "balance", missing=NULL),
        field(Kind.JSON, "extra_currencies", missing=_EMPTY),
        field(Kind.TEXT, "account_status", missing=NULL),
        fields(Kind.BASE64, "frozen_hash data_hash code_hash", missing=NULL),
    )


def _lay_out_size(prefix: str) -> Field:
    columns = [f"{prefix}_msg_size_{name}" for name in ("cells", "bits")]
    name = "tot_msg_size" if prefix == "action_tot" else "msg_size"
    inner = compile_layout(
        field(Kind.TEXT_NUMBER, "cells", columns[0]),
        field(Kind.TEXT_NUMBER, "bits", columns[1], missing=NULL),
    )
    return field(Kind.OBJECT, name, (columns[0],), other=inner)


def _lay_out_description() -> object:
    credit = ("credit", "credit_due_fees_collected", "credit_extra_currencies")
    return compile_layout(
        field(Kind.TEXT, "type", "descr"),
        fields(Kind.FLAG, "aborted destroyed credit_first is_tock installed"),
        _part(
            "storage_ph",
            ("storage_status_change",),
            fields(Kind.TEXT_NUMBER, "storage_fees_collected storage_fees_due"),
            field(Kind.TEXT, "status_change", "storage_status_change"),
        ),
        _part(
            "credit_ph",
            credit,
            fields(Kind.TEXT_NUMBER, "due_fees_collected", prefix="credit_"),
            field(Kind.TEXT_NUMBER, "credit"),
            field(Kind.JSON, "credit_extra_currencies"),
        ),
        _lay_out_compute(),
        _lay_out_action(),
        _part(
            "bounce",
            ("bounce",),
            field(Kind.TEXT, "type", "bounce"),
            fields(Kind.TEXT_NUMBER, "req_fwd_fees msg_fees fwd_fees", prefix="bounce_"),
            _lay_out_size("bounce"),
        ),
        _part(
            "split_info",
            ("split_info_cur_shard_pfx_len",),
            fields(Kind.NUMBER, "cur_shard_pfx_len acc_split_depth", prefix="split_info_"),
            *(
                field(Kind.ACCOUNT, name, "workchain", missing=NULL, other=f"split_info_{name}")
                for name in ("this_addr", "sibling_addr")
            ),
        ),
    )


def _part(name: str, columns: tuple[str, ...], *parts: Field | Sequence[Field]) -> Field:
    return field(Kind.OBJECT, name, columns, other=compile_layout(*parts))


def _lay_out_compute() -> Field:
    prefix = "compute_"
    return _part(
        "compute_ph",
        ("compute_skipped",),
        fields(Kind.FLAG, "skipped success msg_state_used account_activated", prefix=prefix),
        field(Kind.TEXT, "reason", "compute_skip_reason"),
        fields(Kind.TEXT_NUMBER, "gas_fees gas_used gas_limit gas_credit", prefix=prefix),
        fields(Kind.NUMBER, "mode exit_code exit_arg vm_steps", prefix=prefix),
        fields(Kind.BASE64, "vm_init_state_hash vm_final_state_hash", prefix=prefix),
    )


def _lay_out_action() -> Field:
    prefix = "action_"
    numbers = "result_code result_arg tot_actions spec_actions skipped_actions msgs_created"
    return _part(
        "action",
        ("action_success",),
        fields(Kind.FLAG, "success valid no_funds", prefix=prefix),
        field(Kind.TEXT, "status_change", "action_status_change"),
        fields(Kind.TEXT_NUMBER, "total_fwd_fees total_action_fees", prefix=prefix),
        fields(Kind.NUMBER, numbers, prefix=prefix),
        field(Kind.BASE64, "action_list_hash"),
        _lay_out_size("action_tot"),
    )


def _lay_out_message(opcode_format: str, named: str) -> object:
    """Return the layout of messages; the account at their end ``named`` is another's."""
    opcode = Kind.NUMBER if opcode_format == "integer" else Kind.OPCODE
    known = frozenset(filter(name_opcode, load_scheme().layouts))
    return compile_layout(
        field(Kind.BASE64, "hash", "msg_hash"),
        *(
            field(
                Kind.NAMED_ACCOUNT if end == named else Kind.ACCOUNT,
                end,
                f"{end}_workchain",
                missing=NULL,
                other=end,
            )
            for end in ("source", "destination")
        ),
        fields(
            Kind.TEXT_NUMBER,
            "value fwd_fee ihr_fee extra_flags created_lt created_at import_fee",
            missing=NULL,
        ),
        field(Kind.CURRENCIES, "value_extra_currencies", other=("kind", _write_currencies)),
        field(opcode, "opcode", missing=NULL),
        fields(Kind.FLAG, "ihr_disabled bounce bounced", missing=NULL),
        Field(Kind.BODY, -1, ("body_hash", "body", "kind"), b"", None, (known, write_body)),
        field(Kind.CALL, "init_state", "init_state_hash", missing=NULL, other=_write_init_state),
        field(Kind.BASE64, "in_msg_tx_hash", "in_tx_hash"),
        field(Kind.BASE64, "out_msg_tx_hash", "out_tx_hash"),
        field(Kind.BASE64_UNLESS, "hash_norm", other="msg_hash"),
    )


def _write_currencies(row: Row) -> bytes:
    return msgspec.json.encode(decode_currencies(row["value_extra_currencies"]))


def _write_init_state(row: Row) -> bytes:
    return msgspec.json.encode(render_content(row["init_state_hash"], row["init_state"]))
