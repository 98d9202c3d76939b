"""A transaction as version 3 writes it, from a row of ``transactions`` and what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from api.address import render_raw
from api.encoding import (
    decode_currencies,
    encode_bytes,
    encode_number,
    encode_optional,
    encode_shard,
)
from api.v3 import model
from api.v3.message import render_message
from api.v3.phase import render_description

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = dict[str, Any]

NONEXIST_HASH = bytes.fromhex("90aec8965afabb16ebc3cb9b408ebae71b618d78788bc80d09843593cac98da4")
"""Hash of the cell ``account_none$0``, one zero bit: the state of every account that is not."""


def render_transaction(
    row: Row,
    messages: Iterable[Row],
    states: Mapping[tuple[int, bytes, bytes], Row],
    opcode_format: str,
) -> model.Transaction:
    """Return a transaction.

    Args:
        row: A row of ``transactions``, and trace_id where known; block columns may be None.
        messages: Its rows of ``messages``, by direction and place.
        states: Rows of ``account_states`` by workchain, account and state hash.
        opcode_format: ``hex`` or ``integer``.
    """
    by_direction: dict[str, list[model.Message]] = {"in": [], "out": []}
    for message in sorted(messages, key=lambda item: int(item["msg_index"])):
        by_direction[message["direction"]].append(render_message(message, opcode_format))
    return model.Transaction(
        account=render_raw(row["workchain"], row["account"]),
        hash=encode_bytes(row["hash"]),
        lt=str(row["lt"]),
        now=row["now"],
        mc_block_seqno=row["mc_seqno"],
        prev_trans_hash=encode_bytes(row["prev_trans_hash"]),
        prev_trans_lt=str(row["prev_trans_lt"]),
        orig_status=row["orig_status"],
        end_status=row["end_status"],
        total_fees=str(row["total_fees"]),
        total_fees_extra_currencies=decode_currencies(row["total_fees_extra_currencies"]),
        description=render_description(row),
        block_ref=_render_block_ref(row),
        in_msg=next(iter(by_direction["in"]), None),
        out_msgs=by_direction["out"],
        account_state_before=render_state(row, "account_state_hash_before", states),
        account_state_after=render_state(row, "account_state_hash_after", states),
        trace_id=encode_optional(row.get("trace_id")) or UNSET,
    )


def _render_block_ref(row: Row) -> model.BlockId | None:
    if row["block_seqno"] is None:
        return None
    shard = None if row["shard"] is None else encode_shard(row["shard"])
    return model.BlockId(workchain=row["workchain"], shard=shard, seqno=row["block_seqno"])


def render_state(
    row: Row, column: str, states: Mapping[tuple[int, bytes, bytes], Row]
) -> model.AccountState:
    """Return the state whose hash stands in a column of a row with workchain and account.

    It is filled in if it is known; one that does not exist needs no row to be known.
    """
    state_hash = row[column]
    if state_hash == NONEXIST_HASH:
        return model.AccountState(
            hash=encode_bytes(state_hash),
            balance="0",
            extra_currencies={},
            account_status="nonexist",
        )
    state = states.get((row["workchain"], row["account"], state_hash))
    if state is None:
        return model.AccountState(hash=encode_bytes(state_hash))
    return model.AccountState(
        hash=encode_bytes(state_hash),
        balance=encode_number(state["balance"]),
        extra_currencies=decode_currencies(state["extra_currencies"]),
        account_status=state["account_status"],
        frozen_hash=encode_optional(state["frozen_hash"]),
        data_hash=encode_optional(state["data_hash"]),
        code_hash=encode_optional(state["code_hash"]),
    )
