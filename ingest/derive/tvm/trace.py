"""Emulates the trace of a message: its transaction and those of all resulting messages.

Messages are delivered in the order of their logical times, as if all accounts were in one shard and
one block: where accounts share nothing but messages, as on the chain, the result is the same. The
seed of the block is not known in advance: contracts that use random numbers may act differently.

Messages are bags. TL-B: message$_ info:CommonMsgInfo init:(Maybe (Either StateInit ^StateInit))
body:(Either X ^X); msg_forward_prices#ea (parameters 24, 25), storage_prices#cc (parameter 18). The
fees are those of ``MsgPrices::compute_fwd_fees`` and ``StoragePrices::compute_storage_fees`` of the
node.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.block.state import read_account
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Emulated, EmulationCall, NotAccepted
from tonlake.ingest.derive.tvm.machine.instruction.environment import round_up
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.account import MASTERCHAIN, AccountId

Row = dict[str, Any]


class TraceStep(msgspec.Struct, frozen=True):
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

    steps: list[TraceStep]
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
    block: Callable[[], tuple[EmulationCall, int]],
    read_account: Callable[[int, bytes], bytes],
    read_libraries: Callable[[Sequence[bytes]], bytes | None],
    message: bytes,
    *,
    max_transactions: int,
) -> EmulatedTrace | NotAccepted:
    """Emulate the transaction of a message (a bag) and of every internal one that results from it.

    ``block`` returns a call with what all transactions of the block share, ``lt`` the first one,
    and the global version; ``read_account`` ShardAccount of an account, ``read_libraries`` the
    public libraries that bags refer to. Raises TvmError, DecodeError, BocError.
    """
    workchain, account = read_destination(message)
    common, version = block()
    trace = _Trace(version)
    todo = [_Due(0, 0, workchain, account, message, None)]
    while todo and len(trace.steps) < max_transactions:
        due = heapq.heappop(todo)
        state, last_lt = trace.accounts.get((due.workchain, due.account), (None, 0))
        if state is None:
            state = read_account(due.workchain, due.account)
        made = emulate(
            msgspec.structs.replace(
                common,
                account=state,
                message=due.message,
                lt=max(common.lt, due.lt + 1, last_lt + 1),
                libraries=read_libraries((state, due.message)),
            )
        )
        if isinstance(made, NotAccepted):
            return made  # an internal message is never refused, so this is the first one
        for sent in trace.add(due, made):
            heapq.heappush(todo, sent)
    return EmulatedTrace(trace.steps, bool(todo))


class _Trace:
    """The transactions so far, and the account states after them with their last lt."""

    def __init__(self, global_version: int) -> None:
        self.steps: list[TraceStep] = []
        self.accounts: dict[AccountId, tuple[bytes, int]] = {}
        self._global_version = global_version
        self._sent = 0

    def add(self, due: _Due, made: Emulated) -> list[_Due]:
        """Keep a transaction, and return the internal messages that it sent."""
        row, messages = decode_transaction(made.transaction, global_version=self._global_version)
        row["workchain"] = due.workchain
        for message in messages:
            message["tx_workchain"] = due.workchain
        place = len(self.steps)
        self.steps.append(TraceStep(row, messages, made.account, due.parent))
        last_lt = row["lt"] + row["outmsg_cnt"]
        self.accounts[due.workchain, due.account] = made.account, last_lt
        _received, bags = list_messages(made.transaction)
        sent = [message for message in messages if message["direction"] == "out"]
        found = []
        for message, bag in zip(sent, bags, strict=True):
            if message["kind"] == "int" and message["destination_kind"] == "std":
                self._sent += 1
                target = (message["destination_workchain"], message["destination"])
                found.append(_Due(message["created_lt"], self._sent, *target, bag, place))
        return found


_OUT_KEY_BITS = 15
_EXT_IN = 0b10
_ADDR_NONE, _ADDR_STD = 0b00, 0b100


def read_message(boc: bytes) -> dict[str, Any]:
    """Return the columns of ``messages`` from ``msg_hash`` on; raise BocError or DecodeError."""
    tree = parse_boc(boc)
    try:
        return MessageDecoder(tree, None).decode_row(tree.roots[0])
    except (BocError, DecodeError) as error:
        raise DecodeError(f"the cell is not a message: {error}") from error


def read_destination(boc: bytes) -> AccountId:
    """Return the standard address that a message is sent to; raise BocError or DecodeError."""
    message = read_message(boc)
    if message["destination_kind"] != "std":
        raise DecodeError("the destination of the message is not a standard address (addr_std)")
    return message["destination_workchain"], message["destination"]


def list_messages(transaction: bytes) -> tuple[bytes | None, list[bytes]]:
    """Return the in message and the out messages of a transaction as bags; raise BocError."""
    tree = parse_boc(transaction)
    start = tree.slice(tree.links[tree.roots[0]][0])
    received = start.load_maybe_ref()
    root = start.load_maybe_ref()
    leaves = () if root is None else iter_hashmap(tree, root, _OUT_KEY_BITS)
    sent = [leaf.load_ref() for _index, leaf in leaves]
    return (
        None if received is None else serialize_boc(tree, [received]),
        [serialize_boc(tree, [cell]) for cell in sent],
    )


def build_external_message(
    workchain: int, account: bytes, body: bytes, state_init: tuple[bytes | None, bytes | None]
) -> bytes:
    """Return an external message as wallets send it: no source, no import fee, body by reference.

    ``state_init`` is code and data as bags, as is the body; (None, None) sends no StateInit. Raises
    BocError if a bag is invalid, or the workchain does not fit into 8 bits.
    """
    tree = CellTree()
    builder = CellBuilder(tree).store_uint(_EXT_IN, 2).store_uint(_ADDR_NONE, 2)
    builder.store_uint(_ADDR_STD, 3).store_int(workchain, 8).store_bytes(account).store_coins(0)
    code, data = (None if boc is None else graft(tree, parse_boc(boc)) for boc in state_init)
    if code is None and data is None:
        builder.store_bit(0)
    else:
        init = CellBuilder(tree).store_uint(0, 2)  # no fixed_prefix_length, not special
        init.store_maybe_ref(code).store_maybe_ref(data).store_maybe_ref(None)
        builder.store_uint(0b11, 2).store_ref(init.end())
    builder.store_bit(1).store_ref(graft(tree, parse_boc(body)))
    return serialize_boc(tree, [builder.end()])


_STORAGE_PRICES = 18
_MASTERCHAIN_MESSAGES, _MESSAGES = 24, 25
_CONFIG_ACCOUNT, _SPECIAL_ACCOUNTS = 0, 31
_ACCOUNT_BITS = 256
_MESSAGE_TAG, _STORAGE_TAG = 0xEA, 0xCC
_UTIME_BITS = 32


class Fees(msgspec.Struct, frozen=True):
    """Fees that an account pays for a message, in nanoton."""

    in_fwd_fee: int
    storage_fee: int
    gas_fee: int
    fwd_fee: int


def read_fees(made: Emulated, *, global_version: int) -> Fees:
    """Return the fees of an emulated external message.

    The import fee is the rest of total_fees after storage, gas and actions.
    """
    row, _messages = decode_transaction(made.transaction, global_version=global_version)
    storage, gas = row["storage_fees_collected"] or 0, row["compute_gas_fees"] or 0
    left = row["total_fees"] - storage - gas - (row["action_total_action_fees"] or 0)
    return Fees(left, storage, gas, row["action_total_fwd_fees"] or 0)


def estimate_unaccepted(
    account: bytes | None, message: bytes, params: Mapping[int, bytes], now: int
) -> Fees:
    """Return the fees of a message that is not accepted: no gas, no actions.

    Account and message are bags, ``params`` is the configuration by number, ``now`` Unix seconds.
    Raises DecodeError if the configuration lacks the prices, or the message has no standard
    destination.
    """
    workchain, address = read_destination(message)
    if is_special(params, workchain, address):
        return Fees(0, 0, 0, 0)
    is_masterchain = workchain == MASTERCHAIN
    price = compute_forward_fee(message, params, is_masterchain=is_masterchain)
    storage = compute_storage_fee(account, params, now, is_masterchain=is_masterchain)
    return Fees(price, storage, 0, 0)


def is_special(params: Mapping[int, bytes], workchain: int, account: bytes) -> bool:
    """Return whether an account is special, and so pays no fees.

    TL-B: config_addr:bits256 (parameter 0), fundamental_smc_addr:(HashmapE 256 True) (31).
    """
    if workchain != MASTERCHAIN:
        return False
    special = set()
    if _CONFIG_ACCOUNT in params:
        tree = parse_boc(params[_CONFIG_ACCOUNT])
        special.add(tree.slice(tree.roots[0]).load_uint(_ACCOUNT_BITS))
    if _SPECIAL_ACCOUNTS in params:
        tree = parse_boc(params[_SPECIAL_ACCOUNTS])
        root = tree.slice(tree.roots[0]).load_maybe_ref()
        if root is not None:
            special |= {key for key, _leaf in iter_hashmap(tree, root, _ACCOUNT_BITS)}
    return int.from_bytes(account, "big") in special


def compute_forward_fee(
    message: bytes, params: Mapping[int, bytes], *, is_masterchain: bool
) -> int:
    """Return the forward fee of a message, for its cells except the root, each counted once."""
    number = _MASTERCHAIN_MESSAGES if is_masterchain else _MESSAGES
    tree = parse_boc(_find(params, number))
    start = tree.slice(tree.roots[0])
    if start.load_uint(8) != _MESSAGE_TAG:
        raise DecodeError(f"configuration parameter {number} has no message prices")
    lump, bit_price, cell_price = (start.load_uint(64) for _ in range(3))
    bits, cells = _measure(parse_boc(message))
    return lump + round_up(bit_price * bits + cell_price * cells)


def compute_storage_fee(
    account: bytes | None, params: Mapping[int, bytes], now: int, *, is_masterchain: bool
) -> int:
    """Return the storage fee that an account owes since its last payment."""
    if account is None:
        return 0
    tree = parse_boc(account)
    state = read_account(tree, tree.roots[0])
    paid = state.storage_last_paid or 0
    if not paid or now <= paid:
        return 0
    total, until = 0, now
    for since, (bit_price, cell_price) in reversed(_read_storage_prices(params, is_masterchain)):
        start = max(since, paid)
        if until > start:
            per_s = (state.storage_bits or 0) * bit_price + (state.storage_cells or 0) * cell_price
            total += per_s * (until - start)
            until = start
    return round_up(total)


def _read_storage_prices(
    params: Mapping[int, bytes],
    is_masterchain: bool,  # noqa: FBT001 - one of two columns
) -> list[tuple[int, tuple[int, int]]]:
    """Return the start times of prices, ascending, with the prices of a bit and of a cell."""
    tree = parse_boc(_find(params, _STORAGE_PRICES))
    found = []
    for since, start in iter_hashmap(tree, tree.roots[0], _UTIME_BITS):
        if start.load_uint(8) != _STORAGE_TAG:
            raise DecodeError("configuration parameter 18 has no storage prices")
        start.skip(_UTIME_BITS)
        prices = [start.load_uint(64) for _ in range(4)]
        found.append((since, (prices[2], prices[3]) if is_masterchain else (prices[0], prices[1])))
    return found


def _measure(tree: CellTree) -> tuple[int, int]:
    """Return the total bits and the number of all cells below the root, equal ones counted once."""
    todo = list(tree.links[tree.roots[0]])
    seen: set[bytes] = set()
    bits = 0
    while todo:
        cell = todo.pop()
        if tree.hash(cell) not in seen:
            seen.add(tree.hash(cell))
            bits += tree.bit_length(cell)
            todo.extend(tree.links[cell])
    return bits, len(seen)


def _find(params: Mapping[int, bytes], number: int) -> bytes:
    if number not in params:
        raise DecodeError(f"the configuration has no parameter {number}")
    return params[number]
