"""Emulates the trace of a message: its transaction and those of all resulting messages.

Messages are delivered in the order of their logical times, as if all accounts were in one shard and
one block: where accounts share nothing but messages, as on the chain, the result is the same. The
seed of the block is not known in advance: contracts that use random numbers may act differently.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.derive.tvm.call import Emulated, EmulationCall, NotAccepted, StackValue
from tonlake.ingest.derive.tvm.message import list_messages, read_destination
from tonlake.lake.account import AccountId

Row = dict[str, Any]


class World(Protocol):
    """The state of the chain at one moment, as the emulator needs it."""

    now: int
    """Unix time of the emulated block."""
    lt: int
    """First logical time of that block."""
    rand_seed: bytes

    @property
    def config(self) -> bytes:
        """The configuration as Hashmap 32 ^Cell."""

    @property
    def global_version(self) -> int:
        """The global version of the configuration."""

    @property
    def previous(self) -> StackValue:
        """PrevBlocksInfo."""

    def read_account(self, workchain: int, account: bytes) -> bytes:
        """Return ShardAccount of an account, which need not exist."""

    def read_libraries(self, bags: Iterable[bytes]) -> bytes | None:
        """Return the public libraries that these bags of cells refer to: Hashmap 256 ^Cell."""


class Step(msgspec.Struct, frozen=True):
    """A transaction of a trace.

    ``row`` and ``messages`` are those of ``decode_transaction``, with the workchain added;
    ``parent`` is the index in the trace of the transaction that sent its message, None for the
    first; ``account`` is ShardAccount after it.
    """

    row: Row
    messages: list[Row]
    account: bytes
    parent: int | None


class EmulatedTrace(msgspec.Struct, frozen=True):
    """Transactions in the order of emulation; ``cut`` if the limit ended the trace."""

    steps: list[Step]
    cut: bool


class _Due(msgspec.Struct, frozen=True, order=True):
    """A message to be delivered, ordered by logical time."""

    lt: int
    number: int
    workchain: int
    account: bytes
    message: bytes
    parent: int | None


def emulate_trace(
    emulate: Callable[[EmulationCall], Emulated | NotAccepted],
    world: World,
    message: bytes,
    *,
    max_transactions: int = 256,
) -> EmulatedTrace | NotAccepted:
    """Emulate the transaction of a message and of every internal message that results from it.

    Args:
        emulate: Emulates one transaction: ``TvmPool.emulate``.
        world: State of the chain.
        message: External or internal message to a standard address, as a bag.
        max_transactions: Number of transactions after which the trace is cut.

    Raises:
        TvmError: the emulator rejects a message, or does not finish.
        DecodeError, BocError: the message is invalid, or has no standard destination.
    """
    trace = _Trace(world)
    workchain, account = read_destination(message)
    todo = [_Due(0, 0, workchain, account, message, None)]
    while todo and len(trace.steps) < max_transactions:
        due = heapq.heappop(todo)
        made = emulate(trace.describe(due))
        if isinstance(made, NotAccepted):
            return made  # an internal message is never refused, so this is the first one
        for sent in trace.add(due, made):
            heapq.heappush(todo, sent)
    return EmulatedTrace(trace.steps, bool(todo))


class _Trace:
    """The transactions so far, and the account states after them."""

    def __init__(self, world: World) -> None:
        self.steps: list[Step] = []
        self._world = world
        self._accounts: dict[AccountId, bytes] = {}
        self._last_lts: dict[AccountId, int] = {}
        self._sent = 0

    def describe(self, due: _Due) -> EmulationCall:
        """Return the emulation call that delivers a message."""
        world, key = self._world, (due.workchain, due.account)
        account = self._accounts.get(key)
        if account is None:
            account = world.read_account(*key)
        return EmulationCall(
            account=account,
            message=due.message,
            config=world.config,
            now=world.now,
            lt=max(world.lt, due.lt + 1, self._last_lts.get(key, 0) + 1),
            libraries=world.read_libraries((account, due.message)),
            previous=world.previous,
            rand_seed=world.rand_seed,
        )

    def add(self, due: _Due, made: Emulated) -> list[_Due]:
        """Keep a transaction, and return the internal messages that it sent."""
        row, messages = decode_transaction(
            made.transaction, global_version=self._world.global_version
        )
        row["workchain"] = due.workchain
        for message in messages:
            message["tx_workchain"] = due.workchain
        place = len(self.steps)
        self.steps.append(Step(row, messages, made.account, due.parent))
        key = (due.workchain, due.account)
        self._accounts[key] = made.account
        self._last_lts[key] = row["lt"] + row["outmsg_cnt"]
        _received, bags = list_messages(made.transaction)
        sent = [message for message in messages if message["direction"] == "out"]
        found = []
        for message, bag in zip(sent, bags, strict=True):
            if message["kind"] == "int" and message["destination_kind"] == "std":
                self._sent += 1
                target = (message["destination_workchain"], message["destination"])
                found.append(_Due(message["created_lt"], self._sent, *target, bag, place))
        return found
