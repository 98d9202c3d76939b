"""Runs get-methods on the state of an account after any masterchain block in the lake.

The rest of a contract's environment is the same for all accounts: the configuration, the previous
masterchain blocks, and public libraries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tonlake.api.chain.account import find_state, find_utime, read_cells
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.place import (
    STATE_UNKNOWN,
    find_configuration_seqno,
    knows_every_account,
    name_ranges,
)
from tonlake.api.errors import LiteServerError, ResultDeep
from tonlake.api.text.encoding import decode_currencies
from tonlake.api.text.stack import decode_stack
from tonlake.ingest.derive.tvm.call import (
    CELL_UNDERFLOW,
    NO_CODE,
    GetMethodCall,
    Outcome,
)
from tonlake.ingest.derive.tvm.context import (
    Context,
    MasterId,
    PreviousBlocks,
    join_config,
    join_libraries,
)
from tonlake.ingest.derive.tvm.pool import STACK_DEPTH
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL
from tonlake.ingest.derive.tvm.support import find_engine
from tonlake.ingest.errors import SourceError, TvmMissing, TvmOutdated, TvmStackDeep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tonlake.api.chain.account import AccountState
    from tonlake.api.chain.arguments import AccountParams
    from tonlake.api.request.call import Call
    from tonlake.ingest.derive.tvm.context import NetworkConfig
    from tonlake.ingest.derive.tvm.stack import StackValue

LIBRARIES = 256
"""Maximum public libraries read for one get-method."""

_LAST, _STEP = 16, 100
_LIBRARY_CELL = re.compile(rb"(?=\x08\x42\x02(.{32}))", re.DOTALL)
"""A library cell in a bag: exotic, no references, 33 bytes (type 2 and a hash). Other bytes may
match, too, but no library has their hash."""


def read_network_config(call: Call, master: Mapping[str, Any]) -> NetworkConfig:
    """Return the configuration after a masterchain block.

    Raises:
        LiteServerError: the key block is not in the lake.
    """
    return join_config(tuple(read_params(call, master).items()))


def find_previous(call: Call, master: Mapping[str, Any]) -> PreviousBlocks:
    """Return the masterchain blocks that a contract can query, as far as the lake has them."""
    seqno: int = master["seqno"]
    last = range(seqno, max(-1, seqno - _LAST), -1)
    newest = seqno // _STEP * _STEP
    hundredths = range(newest, max(-1, newest - _LAST * _STEP), -_STEP)
    key = find_configuration_seqno(master)
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
    """Return the blocks of ``seqnos``, or None unless all are known."""
    found = [known.get(seqno) for seqno in seqnos]
    return None if None in found else [block for block in found if block is not None]


def read_libraries(
    call: Call, mc_seqno: int, bags: Iterable[bytes]
) -> tuple[set[bytes], dict[bytes, bytes]]:
    """Return the hashes in library cells, also of libraries, and the public libraries found."""
    named: set[bytes] = set()
    found: dict[bytes, bytes] = {}
    fresh = _find_library_hashes(bags)
    while fresh and len(found) < LIBRARIES:
        named |= fresh
        hashes = sorted(fresh)[: LIBRARIES - len(found)]
        rows = call.reader.rows("v2/libraries", hashes=hashes, mc_seqno=mc_seqno)
        brought = read_cell_trees(call.reader, [row["hash"] for row in rows])
        found |= brought
        fresh = _find_library_hashes(brought.values()) - named
    return named, found


def _find_library_hashes(bags: Iterable[bytes]) -> set[bytes]:
    return {match for boc in bags for match in _LIBRARY_CELL.findall(boc)}


def read_params(call: Call, master: Mapping[str, Any]) -> dict[int, bytes]:
    """Return the configuration after a masterchain block, which is that of its newest key block.

    Raises:
        LiteServerError: the key block is not in the lake.
    """
    key_seqno = find_configuration_seqno(master)
    rows = call.reader.rows("v2/config_params", mc_seqno=key_seqno)
    if not rows:
        if call.fetcher is not None:
            try:
                return call.fetcher.fetch_config(call, master)
            except SourceError as error:
                call.warn(f"the configuration could not be fetched from lite servers: {error}")
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, "
            f"and the configuration after {master['seqno']} is that of key block {key_seqno}"
        )
    return {row["param"]: row["boc"] for row in rows}


def run_get_method(
    call: Call, params: AccountParams, method: int, arguments: Sequence[Any]
) -> tuple[AccountState, Outcome]:
    """Run a get-method with arguments as JSON; return the state it ran on and the outcome.

    Raises:
        RequestInvalid, StackTypeUnknown: an argument is invalid.
        LiteServerError: the block, state, configuration or a library is not in the lake.
        ResultDeep: the resulting stack is nested too deeply.
        TvmError: the run failed.
    """
    stack = (*decode_stack(arguments), method)
    state = find_state(call, params)
    return state, run_on_state(call, state, stack)


def run_on_state(call: Call, state: AccountState, stack: tuple[StackValue, ...]) -> Outcome:
    """Run a get-method on a state; ``stack`` has the deepest argument first, the method id last.

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
    context = _describe_context(call, state)
    prepared = GetMethodCall(
        code=code,
        data=data,
        stack=stack,
        context=context,
        libraries=join_libraries(libraries),
    )
    try:
        outcome = call.tvm.run_get_method(prepared)
    except TvmStackDeep as error:
        raise ResultDeep(f"Result stack depth >= {STACK_DEPTH}") from error
    reason = find_engine(call.tvm.settings).explain(outcome.exit_code, context.version)
    if reason is not None:
        raise TvmOutdated(reason)
    missing = sorted(named - libraries.keys())
    seqno = state.master["seqno"]
    if outcome.exit_code == CELL_UNDERFLOW and missing and not knows_every_account(call, seqno):
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, and library {missing[0].hex()}, "
            f"which {state.address} needs, was not published in that range up to {seqno}"
        )
    return outcome


def _describe_context(call: Call, state: AccountState) -> Context:
    """Return the environment of the contract as of the state's block, not of today."""
    currencies = decode_currencies(state.extra_currencies)
    config = read_network_config(call, state.master)
    return Context(
        workchain=state.address.workchain,
        account=state.address.account,
        now=find_utime(call, state),
        balance=state.balance,
        currencies={int(number): int(amount) for number, amount in currencies.items()},
        config=config.root,
        version=config.version,
        previous=find_previous(call, state.master),
    )


def _list_bags(values: Iterable[StackValue]) -> Iterator[bytes]:
    """Yield every bag of cells in a stack."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _list_bags(value)
        elif hasattr(value, "boc"):
            yield value.boc
