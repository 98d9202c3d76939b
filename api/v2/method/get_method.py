"""Get-methods: the code of an account, run on its state after any block that the lake covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.get_method import run_get_method
from tonlake.api.text.stack import encode_legacy, encode_typed
from tonlake.api.v2.value import render_block_of, render_transaction_id

if TYPE_CHECKING:
    from tonlake.api.chain.arguments import GetMethodParams
    from tonlake.api.request.call import Call


def answer_run(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethod: result stack as pairs of tag and value."""
    state, outcome = run_get_method(call, params, params.method, params.stack)
    return {
        "@type": "smc.runResult",
        "gas_used": outcome.gas_used,
        "stack": [encode_legacy(value) for value in outcome.stack],
        "exit_code": outcome.exit_code,
        "block_id": render_block_of(state.master),
        "last_transaction_id": render_transaction_id(state.last_trans_lt, state.last_trans_hash),
    }


def answer_run_std(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethodStd: result stack as typed entries."""
    _state, outcome = run_get_method(call, params, params.method, params.stack)
    return {
        "@type": "smc.runResult",
        "gas_used": outcome.gas_used,
        "stack": [encode_typed(value) for value in outcome.stack],
        "exit_code": outcome.exit_code,
    }
