"""Get-methods: the code of an account, run on its state after any block that the lake covers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from api.cells import read_cell_trees
from api.encoding import decode_currencies
from api.errors import LiteServerError, ResultDeep
from api.stack import decode_stack, encode_legacy, encode_typed
from api.v2.account import find_state, find_utime, read_cells
from api.v2.config import graft, join_params, read_params
from api.v2.place import (
    STATE_UNKNOWN,
    begins_at_zero_state,
    find_configuration_seqno,
    name_ranges,
)
from api.v2.value import render_block_of
from ingest.cell.boc import parse_boc
from ingest.cell.dictionary_writer import build_hashmap
from ingest.cell.tree import CellTree
from ingest.cell.writer import serialize_boc
from ingest.errors import TvmMissing, TvmStackDeep
from ingest.tvm.call import CELL_UNDERFLOW, NO_CODE, GetMethodCall, Outcome
from ingest.tvm.context import Context, MasterId, NetworkConfig, PreviousBlocks, build_c7
from ingest.tvm.process import HOW_TO_INSTALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from api.call import Call
    from api.v2.account import AccountState
    from api.v2.arguments import AccountParams, GetMethodParams
    from ingest.tvm.stack import StackValue

_LAST, _STEP = 16, 100
_HASH_BITS = 256
_LIBRARY_CELL = re.compile(rb"(?=\x08\x42\x02(.{32}))", re.DOTALL)
"""A library cell in a bag: exotic without references, 33 bytes, of kind 2, and the hash. Other
bytes may look so, too; no library has their hash."""

_KEPT_CONFIGURATIONS = 8


def answer_run(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethod: the resulting stack in pairs of tag and value."""
    state, outcome = run_get_method(call, params, params.method, params.stack)
    return {
        "@type": "smc.runResult",
        "gas_used": outcome.gas_used,
        "stack": [encode_legacy(value) for value in outcome.stack],
        "exit_code": outcome.exit_code,
        "block_id": render_block_of(state.master),
        "last_transaction_id": state.transaction_id,
    }


def answer_run_std(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethodStd: the resulting stack in typed entries."""
    _state, outcome = run_get_method(call, params, params.method, params.stack)
    return {
        "@type": "smc.runResult",
        "gas_used": outcome.gas_used,
        "stack": [encode_typed(value) for value in outcome.stack],
        "exit_code": outcome.exit_code,
    }


def run_get_method(
    call: Call, params: AccountParams, method: int, arguments: Sequence[Any]
) -> tuple[AccountState, Outcome]:
    """Run a get-method, its arguments given as JSON; return the state it ran on, and how it ended.

    Raises:
        RequestInvalid, StackTypeUnknown: an argument cannot be read.
        LiteServerError: the lake lacks the block, the state, the configuration or a library.
        ResultDeep: the resulting stack is nested too deep to be shown.
        TvmError: it could not be run.
    """
    stack = (*decode_stack(arguments, call.settings), method)
    state = find_state(call, params)
    code, data = read_cells(call, state)
    if code is None:
        return state, Outcome(NO_CODE, 0, stack)
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    named, libraries = _read_libraries(call, state, [code, data or b"", *_list_bags(stack)])
    asked = GetMethodCall(
        code=code,
        data=data,
        stack=stack,
        c7=build_c7(_describe_context(call, state, code)),
        libraries=_join_libraries(libraries),
    )
    try:
        outcome = call.tvm.run_get_method(asked)
    except TvmStackDeep as error:
        raise ResultDeep(f"Result stack depth >= {call.settings.tvm_stack_depth}") from error
    missing = sorted(named - libraries.keys())
    seqno = state.master["seqno"]
    if outcome.exit_code == CELL_UNDERFLOW and missing and not begins_at_zero_state(call, seqno):
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, and library {missing[0].hex()}, "
            f"which {state.address} needs, was not published in that range up to {seqno}"
        )
    return state, outcome


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
        config=_join_config(tuple(read_params(call, state.master).items())),
        previous=_find_previous(call, state),
    )


@lru_cache(_KEPT_CONFIGURATIONS)
def _join_config(params: tuple[tuple[int, bytes], ...]) -> NetworkConfig:
    """Return a configuration; joined once, as get-methods mostly ask for the same."""
    return NetworkConfig(join_params(dict(params)), dict(params))


def _find_previous(call: Call, state: AccountState) -> PreviousBlocks:
    """Return the masterchain blocks that a contract can ask for, as far as the lake has them."""
    seqno: int = state.master["seqno"]
    last = range(seqno, max(-1, seqno - _LAST), -1)
    newest = seqno // _STEP * _STEP
    hundredths = range(newest, max(-1, newest - _LAST * _STEP), -_STEP)
    key = find_configuration_seqno(state.master)
    rows = call.reader.rows("v2/master_ids", seqnos=sorted({*last, *hundredths, key}))
    known = {row["seqno"]: MasterId(**row) for row in rows}
    zero = _identify_zero_state(call)
    if zero is not None:
        known[0] = zero
    return PreviousBlocks(_pick(known, last), known.get(key), _pick(known, hundredths))


def _identify_zero_state(call: Call) -> MasterId | None:
    network = call.reader.snapshot.network
    if network is None or not (network.zero_state_root_hash and network.zero_state_file_hash):
        return None
    hashes = (network.zero_state_root_hash, network.zero_state_file_hash)
    return MasterId(0, *map(bytes.fromhex, hashes))


def _pick(known: dict[int, MasterId], seqnos: Iterable[int]) -> list[MasterId] | None:
    """Return the blocks of these seqnos, or None unless all are known."""
    found = [known.get(seqno) for seqno in seqnos]
    return None if None in found else [block for block in found if block is not None]


def _read_libraries(
    call: Call, state: AccountState, bags: Iterable[bytes]
) -> tuple[set[bytes], dict[bytes, bytes]]:
    """Return the hashes that library cells may name, in libraries too, and those public ones."""
    named: set[bytes] = set()
    found: dict[bytes, bytes] = {}
    fresh = _find_library_hashes(bags)
    while fresh and len(found) < call.settings.tvm_libraries:
        named |= fresh
        hashes = sorted(fresh)[: call.settings.tvm_libraries - len(found)]
        rows = call.reader.rows("v2/libraries", hashes=hashes, mc_seqno=state.master["seqno"])
        brought = read_cell_trees(call.reader, [row["hash"] for row in rows])
        found |= brought
        fresh = _find_library_hashes(brought.values()) - named
    return named, found


def _find_library_hashes(bags: Iterable[bytes]) -> set[bytes]:
    return {match for boc in bags for match in _LIBRARY_CELL.findall(boc)}


def _list_bags(values: Iterable[StackValue]) -> Iterator[bytes]:
    """Yield every bag of cells in a stack."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _list_bags(value)
        elif hasattr(value, "boc"):
            yield value.boc


def _join_libraries(libraries: dict[bytes, bytes]) -> bytes | None:
    """Return Hashmap 256 ^Cell; None where there is nothing to put in it."""
    if not libraries:
        return None
    tree = CellTree()
    entries = [
        (int.from_bytes(key, "big"), graft(tree, parse_boc(boc)))
        for key, boc in sorted(libraries.items())
    ]
    return serialize_boc(tree, [build_hashmap(tree, entries, _HASH_BITS)])
