"""Emulation on the states after a masterchain block: the fees of a message, and what follows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.account import find_state, find_utime, read_shard_account
from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.get_method import (
    find_previous,
    read_libraries,
    read_network_config,
)
from tonlake.api.chain.place import find_master
from tonlake.api.chain.upstream import check_parts
from tonlake.api.errors import LiteServerError
from tonlake.api.text.address import Address, WrittenAddress
from tonlake.ingest.derive.tvm.call import EmulationCall, NotAccepted, split_shard_account
from tonlake.ingest.derive.tvm.context import build_previous, join_libraries
from tonlake.ingest.derive.tvm.message import (
    Fees,
    build_external_message,
    estimate_unaccepted,
    read_fees,
)
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL
from tonlake.ingest.derive.tvm.trace import EmulatedTrace, emulate_trace
from tonlake.ingest.errors import BocError, DecodeError, TvmMissing, TvmRefusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.chain.account import AccountState
    from tonlake.api.chain.arguments import EstimateCellParams, EstimateParams
    from tonlake.api.request.call import Call
    from tonlake.ingest.derive.tvm.context import NetworkConfig
    from tonlake.ingest.derive.tvm.stack import StackValue

LT_STEP = 1_000_000
"""Blocks begin at a logical time that is divisible by this."""


def estimate_fees(call: Call, params: EstimateParams | EstimateCellParams) -> Fees:
    """Return the fees of a message in parts.

    Raises:
        LiteServerError: a part is no bag of cells, the message cannot run, or the lake lacks the
            account's state or the configuration.
        TvmError: it could not be emulated.
    """
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    target = params.address.address
    check_parts(params)
    init = (params.init_code or None, params.init_data or None)
    message = build_external_message(target.workchain, target.account, params.body, init)
    state = find_state(call, AccountParams(address=params.address))
    config = read_network_config(call, state.master)
    emulation = describe_emulation(call, state, message, config)
    emulation = msgspec.structs.replace(emulation, ignore_chksig=params.ignore_chksig)
    try:
        made = call.tvm.emulate(emulation)
        if not isinstance(made, NotAccepted):
            return read_fees(made, global_version=config.version)
        account = None if state.state_hash is None else split_shard_account(emulation.account)[0]
        return estimate_unaccepted(account, message, config.params, emulation.now)
    except (TvmRefusal, DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_UNKNOWN: cannot run the message: {error}") from error


def describe_emulation(
    call: Call, state: AccountState, message: bytes, config: NetworkConfig
) -> EmulationCall:
    """Return what is to be emulated: a message on a state, right after its masterchain block."""
    account = read_shard_account(call, state)
    return EmulationCall(
        account=account,
        message=message,
        config=config.root,
        now=find_utime(call, state),
        lt=next_block_lt(state.master["end_lt"], state.last_trans_lt),
        libraries=find_libraries(call, state.master["seqno"], (account, message)),
        previous=build_previous(find_previous(call, state.master), config.version),
    )


def find_libraries(call: Call, mc_seqno: int, bags: Iterable[bytes]) -> bytes | None:
    """Return the public libraries that bags of cells name, as Hashmap 256 ^Cell."""
    _named, found = read_libraries(call, mc_seqno, bags)
    return join_libraries(found)


def next_block_lt(*lts: int) -> int:
    """Return the logical time at which a block after all of these begins."""
    return (max(lts) // LT_STEP + 1) * LT_STEP


EMULATED_TRANSACTIONS = 256
"""An emulated trace is cut after this many transactions."""


class LakeWorld:
    """The chain after a masterchain block, as ``ingest.derive.tvm.trace`` reads it."""

    def __init__(self, call: Call, master: Mapping[str, Any]) -> None:
        """Take the moment; states are read when they are asked for."""
        self._call = call
        self._master = master
        self.now: int = master["gen_utime"]
        self.lt = next_block_lt(master["end_lt"])
        self.rand_seed = bytes(32)

    @cached_property
    def _network(self) -> NetworkConfig:
        return read_network_config(self._call, self._master)

    @property
    def config(self) -> bytes:
        """The configuration as Hashmap 32 ^Cell."""
        return self._network.root

    @property
    def global_version(self) -> int:
        """The version of the configuration."""
        return self._network.version

    @cached_property
    def previous(self) -> StackValue:
        """PrevBlocksInfo."""
        return build_previous(find_previous(self._call, self._master), self.global_version)

    def read_account(self, workchain: int, account: bytes) -> bytes:
        """Return ShardAccount of an account.

        Raises:
            LiteServerError: the lake cannot know it.
        """
        address = WrittenAddress(Address(workchain, account), friendly=False)
        params = AccountParams(address=address, seqno=self._master["seqno"])
        return read_shard_account(self._call, find_state(self._call, params))

    def read_libraries(self, bags: Iterable[bytes]) -> bytes | None:
        """Return the public libraries that bags of cells name."""
        return find_libraries(self._call, self._master["seqno"], bags)


def emulate_message(
    call: Call, message: bytes, *, seqno: int | None = None
) -> EmulatedTrace | NotAccepted:
    """Make all transactions that a message would set off after a masterchain block.

    The message is a bag, external or internal; the block is that of ``seqno`` or the newest.

    Raises:
        LiteServerError: the lake lacks the block, a state or the configuration.
        TvmError: it could not be emulated.
        DecodeError, BocError: the message is none.
    """
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    world = LakeWorld(call, find_master(call, seqno))
    return emulate_trace(
        call.tvm.emulate,
        world,
        message,
        most_transactions=EMULATED_TRANSACTIONS,
    )
