"""Runs get-methods and emulates messages on the state after any masterchain block in the lake.

The environment of a contract is the same for all accounts: the configuration, the previous
masterchain blocks, and public libraries.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tonlake.api.chain.account import (
    AccountAtBlock,
    find_state,
    find_utime,
    read_cells,
    read_shard_account,
)
from tonlake.api.chain.arguments import AccountParams, EstimateParams
from tonlake.api.chain.block import (
    STATE_UNKNOWN,
    find_configuration_seqno,
    find_master,
    knows_every_account,
    name_coverage,
)
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.upstream import build_message
from tonlake.api.errors import LiteServerError, ResultDeep
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, WrittenAddress, decode_currencies, decode_stack
from tonlake.ingest.blocks import BlockId, name_mc_block
from tonlake.ingest.derive.tvm.call import (
    NO_CODE,
    Context,
    EmulationCall,
    GetMethodCall,
    NetworkConfig,
    NotAccepted,
    Outcome,
    PreviousBlocks,
    StackValue,
    build_previous,
    join_config,
    join_libraries,
    split_shard_account,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit
from tonlake.ingest.derive.tvm.pool import HOW_TO_INSTALL, STACK_DEPTH
from tonlake.ingest.derive.tvm.support import EMULATOR_REMEDY, find_emulator, find_engine
from tonlake.ingest.derive.tvm.trace import (
    EmulatedTrace,
    Fees,
    emulate_trace,
    estimate_unaccepted,
    read_fees,
)
from tonlake.ingest.errors import (
    BocError,
    DecodeError,
    SourceError,
    TvmMissing,
    TvmOutdated,
    TvmRefusal,
    TvmStackDeep,
)

LIBRARIES = 256
"""Maximum public libraries read for one get-method."""

_LAST, _STEP = 16, 100
_LIBRARY_CELL = re.compile(rb"(?=\x08\x42\x02(.{32}))", re.DOTALL)
"""A library cell in a bag: exotic, no references, 33 bytes (type 2 and a hash). Other bytes may
match, too, but no library has their hash."""


def read_network_config(call: Call, master: Mapping[str, Any]) -> NetworkConfig:
    """Return the configuration after a masterchain block."""
    return join_config(tuple(read_params(call, master).items()))


def find_previous(call: Call, master: Mapping[str, Any]) -> PreviousBlocks:
    """Return the masterchain blocks that a contract can query, as far as the lake has them."""
    seqno: int = master["seqno"]
    last = range(seqno, max(-1, seqno - _LAST), -1)
    newest = seqno // _STEP * _STEP
    hundredths = range(newest, max(-1, newest - _LAST * _STEP), -_STEP)
    key = find_configuration_seqno(master)
    rows = call.reader.rows("v2/master_ids", seqnos=sorted({*last, *hundredths, key}))
    ids = ((row["seqno"], row["root_hash"], row["file_hash"]) for row in rows)
    known = {at: name_mc_block(at, *hashes) for at, *hashes in ids}
    network = call.reader.snapshot.state.network
    if network is not None and network.zero_state_root_hash and network.zero_state_file_hash:
        hashes = (network.zero_state_root_hash, network.zero_state_file_hash)
        known[0] = name_mc_block(0, *map(bytes.fromhex, hashes))
    return PreviousBlocks(_pick(known, last), known.get(key), _pick(known, hundredths))


def _pick(known: dict[int, BlockId], seqnos: Iterable[int]) -> list[BlockId] | None:
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
    """Return the configuration after a masterchain block, which is that of its newest key block."""
    key_seqno = find_configuration_seqno(master)
    rows = call.reader.rows("v2/config_params", mc_seqno=key_seqno)
    if not rows:
        if call.fetcher is not None:
            try:
                return call.fetcher.fetch_config(call, master)
            except SourceError as error:
                call.warn(f"the configuration could not be fetched from lite servers: {error}")
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_coverage(call)}, "
            f"and the configuration after {master['seqno']} is that of key block {key_seqno}"
        )
    return {row["param"]: row["boc"] for row in rows}


def run_get_method(
    call: Call, params: AccountParams, method: int, arguments: Sequence[Any]
) -> tuple[AccountAtBlock, Outcome]:
    """Run a get-method with arguments as JSON; return the state it ran on and the outcome.

    Raises RequestInvalid, StackTypeUnknown, LiteServerError, ResultDeep, TvmError.
    """
    stack = (*decode_stack(arguments), method)
    state = find_state(call, params)
    return state, run_on_state(call, state, stack)


def run_on_state(call: Call, state: AccountAtBlock, stack: tuple[StackValue, ...]) -> Outcome:
    """Run a get-method on a state; ``stack`` has the deepest argument first, the method id last."""
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
        code=code, data=data, stack=stack, context=context, libraries=join_libraries(libraries)
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
    if (
        outcome.exit_code == Exit.CELL_UNDERFLOW
        and missing
        and not knows_every_account(call, seqno)
    ):
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_coverage(call)}, and library {missing[0].hex()}, "
            f"which {state.address} needs, was not published in that range up to {seqno}"
        )
    return outcome


def _describe_context(call: Call, state: AccountAtBlock) -> Context:
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


LT_STEP = 1_000_000
"""Block start times (lt) are multiples of this."""


def estimate_fees(call: Call, params: EstimateParams) -> Fees:
    """Return the fees of an external message given in parts."""
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    message = build_message(params)
    if message is None:
        raise LiteServerError("LITE_SERVER_UNKNOWN: a message too deep, or of a large workchain")
    state = find_state(call, AccountParams(address=params.address))
    config = read_network_config(call, state.master)
    if gap := find_emulator(call.tvm.settings).find_gap(config.version):
        call.warn(f"fees may differ from those of the network: {gap}; {EMULATOR_REMEDY}")
    account = read_shard_account(call, state)
    emulation = EmulationCall(  # right after the masterchain block of the state
        account=account,
        message=message,
        config=config.root,
        now=find_utime(call, state),
        lt=next_block_lt(state.master["end_lt"], state.last_trans_lt),
        libraries=find_libraries(call, state.master["seqno"], (account, message)),
        previous=build_previous(find_previous(call, state.master), config.version),
        ignore_chksig=params.ignore_chksig,
    )
    try:
        made = call.tvm.emulate(emulation)
        if not isinstance(made, NotAccepted):
            return read_fees(made, global_version=config.version)
        cell = None if state.state_hash is None else split_shard_account(account)[0]
        return estimate_unaccepted(cell, message, config.params, emulation.now)
    except (TvmRefusal, DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_UNKNOWN: cannot run the message: {error}") from error


def find_libraries(call: Call, mc_seqno: int, bags: Iterable[bytes]) -> bytes | None:
    """Return the public libraries that ``bags`` reference, as Hashmap 256 ^Cell."""
    _named, found = read_libraries(call, mc_seqno, bags)
    return join_libraries(found)


def next_block_lt(*lts: int) -> int:
    """Return the start lt of the first block after all ``lts``."""
    return (max(lts) // LT_STEP + 1) * LT_STEP


EMULATED_TRANSACTIONS = 256
"""Maximum transactions of an emulated trace; a longer trace is cut."""


def emulate_message(
    call: Call, message: bytes, *, seqno: int | None = None
) -> EmulatedTrace | NotAccepted:
    """Emulate all transactions of a message, a bag, after a masterchain block (the newest).

    Raises LiteServerError, TvmError; DecodeError, BocError: it is not a message.
    """
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    master = find_master(call, seqno)

    def describe_block() -> tuple[EmulationCall, int]:
        network = read_network_config(call, master)
        common = EmulationCall(
            account=b"",
            message=None,
            config=network.root,
            now=master["gen_utime"],
            lt=next_block_lt(master["end_lt"]),
            previous=build_previous(find_previous(call, master), network.version),
        )
        return common, network.version

    def read_account(workchain: int, account: bytes) -> bytes:
        address = WrittenAddress(Address(workchain, account), friendly=False)
        params = AccountParams(address=address, seqno=master["seqno"])
        return read_shard_account(call, find_state(call, params))

    return emulate_trace(
        call.tvm.emulate,
        describe_block,
        read_account,
        partial(find_libraries, call, master["seqno"]),
        message,
        max_transactions=EMULATED_TRANSACTIONS,
    )
