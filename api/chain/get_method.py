"""Get-methods: the code of an account, run on its state after any block that the lake covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.account import find_state, find_utime, read_cells
from tonlake.api.chain.place import STATE_UNKNOWN, begins_at_zero_state, name_ranges
from tonlake.api.chain.world import (
    find_previous,
    read_libraries,
    read_network_config,
)
from tonlake.api.errors import LiteServerError, ResultDeep
from tonlake.api.text.encoding import decode_currencies
from tonlake.api.text.stack import decode_stack
from tonlake.ingest.derive.tvm.call import CELL_UNDERFLOW, NO_CODE, GetMethodCall, Outcome
from tonlake.ingest.derive.tvm.context import Context, build_c7, join_libraries
from tonlake.ingest.derive.tvm.pool import STACK_DEPTH
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL
from tonlake.ingest.errors import TvmMissing, TvmStackDeep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tonlake.api.chain.account import AccountState
    from tonlake.api.chain.arguments import AccountParams
    from tonlake.api.request.call import Call
    from tonlake.ingest.derive.tvm.stack import StackValue


def run_get_method(
    call: Call, params: AccountParams, method: int, arguments: Sequence[Any]
) -> tuple[AccountState, Outcome]:
    """Run a get-method, with arguments as JSON; return the state it ran on, and how it ended.

    Raises:
        RequestInvalid, StackTypeUnknown: an argument cannot be read.
        LiteServerError: the lake lacks the block, the state, the configuration or a library.
        ResultDeep: the resulting stack is nested too deep to be shown.
        TvmError: it could not be run.
    """
    stack = (*decode_stack(arguments), method)
    state = find_state(call, params)
    return state, run_on_state(call, state, stack)


def run_on_state(call: Call, state: AccountState, stack: tuple[StackValue, ...]) -> Outcome:
    """Run a get-method on a state; the stack has the deepest argument first, the id last.

    Raises:
        LiteServerError, ResultDeep, TvmError: as ``run_get_method``.
    """
    code, data = read_cells(call, state)
    if code is None:
        return Outcome(NO_CODE, 0, stack)
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    named, libraries = read_libraries(
        call, state.master["seqno"], [code, data or b"", *_list_bags(stack)]
    )
    prepared = GetMethodCall(
        code=code,
        data=data,
        stack=stack,
        c7=build_c7(_describe_context(call, state, code)),
        libraries=join_libraries(libraries),
    )
    try:
        outcome = call.tvm.run_get_method(prepared)
    except TvmStackDeep as error:
        raise ResultDeep(f"Result stack depth >= {STACK_DEPTH}") from error
    missing = sorted(named - libraries.keys())
    seqno = state.master["seqno"]
    if outcome.exit_code == CELL_UNDERFLOW and missing and not begins_at_zero_state(call, seqno):
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, and library {missing[0].hex()}, "
            f"which {state.address} needs, was not published in that range up to {seqno}"
        )
    return outcome


def _describe_context(call: Call, state: AccountState, code: bytes) -> Context:
    """Return what the contract sees: the state of the moment, not of now."""
    currencies = decode_currencies(state.extra_currencies)
    return Context(
        workchain=state.address.workchain,
        account=state.address.account,
        now=find_utime(call, state),
        balance=state.balance,
        currencies={int(number): int(amount) for number, amount in currencies.items()},
        code=code,
        config=read_network_config(call, state.master),
        previous=find_previous(call, state.master),
    )


def _list_bags(values: Iterable[StackValue]) -> Iterator[bytes]:
    """Yield every bag of cells in a stack."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _list_bags(value)
        elif hasattr(value, "boc"):
            yield value.boc
