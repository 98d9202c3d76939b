"""The registry of index answers, by the name of the query that they replace."""

from collections.abc import Callable, Mapping
from typing import Any

from tonlake.lake.index.answer import blocks, contracts, messages, traces, transactions
from tonlake.lake.index.index import Index
from tonlake.lake.index.page import Declined

Answer = Callable[[Index, Mapping[str, Any]], Any]

ANSWERS: dict[str, Answer] = {
    "cells": transactions.find_cells,
    "v2/account_state": transactions.find_newest_state,
    "v2/block_transactions": transactions.list_block_page,
    "v2/shards": blocks.list_shards,
    "v2/bags": transactions.read_bags,
    "v3/account_codes": transactions.find_newest_codes,
    "v3/accounts": transactions.find_newest_states,
    "v3/accounts_by_balance": transactions.rank_accounts,
    "v3/action_keys_of_account": traces.list_account_keys,
    "v3/actions": traces.list_actions,
    "v3/actions_by_key": traces.find_by_key,
    "v3/blocks": blocks.list_blocks,
    "v3/message_rows": messages.read_lines,
    "v3/messages": messages.list_messages,
    "v3/shard_tops": blocks.list_shard_tops,
    "v3/trace_ids_of_messages": traces.list_message_traces,
    "v3/trace_ids_of_transactions": traces.list_transaction_traces,
    "v3/trace_transactions": traces.list_members,
    "v3/traces": traces.list_traces,
    "v3/traces_by_id": traces.find_traces,
    "v3/traces_of_account": traces.list_account_traces,
    "v3/transaction_keys": transactions.list_keys,
    "v3/transaction_keys_adjacent": traces.find_adjacent,
    "v3/transaction_keys_by_hash": transactions.find_keys,
    "v3/transaction_keys_by_message": messages.list_end_transactions,
    "v3/transaction_keys_of_account": transactions.list_account_page,
    "v3/transaction_keys_of_blocks": transactions.list_blocks_page,
    "v3/transaction_traces": traces.find_transaction_traces,
    "v3/transactions": transactions.read_transactions,
    "v3/transactions_of_messages": messages.list_ends,
    **contracts.ANSWERS,
}


def find_answer(index: Index, name: str, parameters: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of a registered query, at least its columns; None if its SQL must run.

    They are dicts, or read by name like dicts. ``parameters`` include defaults.
    """
    try:
        found: list[Any] = ANSWERS[name](index, parameters)
    except Declined:
        return None
    return found
