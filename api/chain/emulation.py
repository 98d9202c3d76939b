"""Emulates messages on the state after a masterchain block: fees and resulting traces."""

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
"""Block start times (lt) are multiples of this."""


def estimate_fees(call: Call, params: EstimateParams | EstimateCellParams) -> Fees:
    """Return the fees of an external message given in parts.

    Raises:
        LiteServerError: a part is not a bag of cells, the message cannot run, or the account's
            state or the configuration is not in the lake.
        TvmError: the emulation failed.
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
    """Return the emulation of ``message`` on ``state``, right after its masterchain block."""
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
    """Return the public libraries that ``bags`` reference, as Hashmap 256 ^Cell."""
    _named, found = read_libraries(call, mc_seqno, bags)
    return join_libraries(found)


def next_block_lt(*lts: int) -> int:
    """Return the start lt of the first block after all ``lts``."""
    return (max(lts) // LT_STEP + 1) * LT_STEP


EMULATED_TRANSACTIONS = 256
"""Maximum transactions of an emulated trace; a longer trace is cut."""


class LakeWorld:
    """The chain after a masterchain block, as the world of ``ingest.derive.tvm.trace``."""

    def __init__(self, call: Call, master: Mapping[str, Any]) -> None:
        """Take the masterchain block; states are read on demand."""
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
        """The previous blocks as PrevBlocksInfo."""
        return build_previous(find_previous(self._call, self._master), self.global_version)

    def read_account(self, workchain: int, account: bytes) -> bytes:
        """Return the ShardAccount of an account.

        Raises:
            LiteServerError: the lake cannot know the state.
        """
        address = WrittenAddress(Address(workchain, account), friendly=False)
        params = AccountParams(address=address, seqno=self._master["seqno"])
        return read_shard_account(self._call, find_state(self._call, params))

    def read_libraries(self, bags: Iterable[bytes]) -> bytes | None:
        """Return the public libraries that ``bags`` reference, as Hashmap 256 ^Cell."""
        return find_libraries(self._call, self._master["seqno"], bags)


def emulate_message(
    call: Call, message: bytes, *, seqno: int | None = None
) -> EmulatedTrace | NotAccepted:
    """Emulate all transactions that a message triggers after a masterchain block.

    ``message`` is a bag of cells, external or internal; ``seqno`` defaults to the newest block.

    Raises:
        LiteServerError: the block, a state or the configuration is not in the lake.
        TvmError: the emulation failed.
        DecodeError, BocError: ``message`` is not a message.
    """
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    world = LakeWorld(call, find_master(call, seqno))
    return emulate_trace(
        call.tvm.emulate,
        world,
        message,
        max_transactions=EMULATED_TRANSACTIONS,
    )
