"""What a message would set off, emulated on the states after a masterchain block of the lake."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tonlake.api.chain.account import find_state, read_shard_account
from tonlake.api.chain.arguments import AccountParams
from tonlake.api.chain.fee import find_libraries, next_block_lt
from tonlake.api.chain.place import find_master
from tonlake.api.chain.world import find_previous, read_network_config
from tonlake.api.text.address import Address, WrittenAddress
from tonlake.ingest.derive.tvm.context import build_previous
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL
from tonlake.ingest.derive.tvm.trace import EmulatedTrace, emulate_trace
from tonlake.ingest.errors import TvmMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.request.call import Call
    from tonlake.ingest.derive.tvm.context import NetworkConfig
    from tonlake.ingest.derive.tvm.emulation import NotAccepted
    from tonlake.ingest.derive.tvm.stack import StackValue

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
    call: Call, message: bytes, *, seqno: int | None = None, ignore_chksig: bool = False
) -> EmulatedTrace | NotAccepted:
    """Make all transactions that a message would set off after a masterchain block.

    Args:
        call: The request.
        message: Message as bag, external or internal.
        seqno: The masterchain block; the newest by default.
        ignore_chksig: Whether every signature counts as right.

    Raises:
        LiteServerError: the lake lacks the block, a state or the configuration.
        TvmError: it could not be emulated.
        DecodeError, BocError: the message is none.
    """
    if call.tvm is None:
        raise TvmMissing(HOW_TO_INSTALL)
    world = LakeWorld(call, find_master(call, seqno))
    most = EMULATED_TRANSACTIONS
    return emulate_trace(
        call.tvm.emulate,
        world,
        message,
        ignore_chksig=ignore_chksig,
        most_transactions=most,
    )
