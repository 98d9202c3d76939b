"""Calls of the TVM and of the emulator, and their results.

The emulator is the node's own code for ordinary and tick-tock transactions: given the state before
a transaction, its message and its block's seed, time and configuration, it reproduces that
transaction bit for bit.

On a stack an integer is an ``int``, null is None, a tuple is a ``tuple``, and a Lisp-style list
(pairs that end in null, never empty) is a ``list``. Cells, slices and builders are bags of cells.
For other processes an integer is decimal text, and all else but null is a list that begins with the
number of its kind. Decoding yields only data, whatever a broken process sends.
"""

import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc


class StackLimits(msgspec.Struct, frozen=True):
    """Limits of a returned stack."""

    entries: int
    depth: int
    boc_bytes: int


class TvmCell(msgspec.Struct, frozen=True):
    """A cell, as a bag of cells."""

    boc: bytes


class TvmSlice(msgspec.Struct, frozen=True):
    """A slice, as a bag of a cell with only the rest of the slice."""

    boc: bytes


class TvmBuilder(msgspec.Struct, frozen=True):
    """A builder, as a bag of the cell that it would end in."""

    boc: bytes


class TvmNan(msgspec.Struct, frozen=True):
    """Not a number: the result of quiet arithmetic on overflow."""


class TvmOpaque(msgspec.Struct, frozen=True):
    """A continuation, or another value without a representation outside the machine."""


StackValue = Any
"""int, None, TvmCell, TvmSlice, TvmBuilder, TvmNan, TvmOpaque, or a tuple or list of these."""

NAN_TEXT = "NaN"
_BAGS = (TvmCell, TvmSlice, TvmBuilder)
_OPAQUE, _TUPLE, _LIST = 3, 4, 5
INTEGER_BITS = 257


def fits_integer(number: int) -> bool:
    """Return whether a number fits an integer of the TVM: signed, 257 bits."""
    return -(1 << INTEGER_BITS - 1) <= number < 1 << INTEGER_BITS - 1


def pack_value(value: StackValue) -> object:
    """Return a value as plain data; raise TypeError if it is not a stack value."""
    if value is None:
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple | list):
        kind = _LIST if isinstance(value, list) else _TUPLE
        return [kind, [pack_value(item) for item in value]]
    if isinstance(value, _BAGS):
        return [_BAGS.index(type(value)), value.boc]
    if isinstance(value, TvmNan):
        return NAN_TEXT
    if isinstance(value, TvmOpaque):
        return [_OPAQUE]
    raise TypeError(f"{type(value).__name__} is not a stack value")


def unpack_value(packed: Any) -> StackValue:  # noqa: ANN401 - plain data of any shape
    """Return a packed value; raise ValueError, TypeError or IndexError for other data."""
    if packed is None:
        return None
    if isinstance(packed, str):
        return TvmNan() if packed == NAN_TEXT else int(packed)
    kind = packed[0]
    if kind == _OPAQUE:
        return TvmOpaque()
    if kind in (_TUPLE, _LIST):
        items = [unpack_value(item) for item in packed[1]]
        return items if kind == _LIST else tuple(items)
    return _BAGS[kind](bytes(packed[1]))


VERSION_PARAM = 8
_HUNDREDTHS_SINCE = 9
VERSION_TAG = 0xC4  # capabilities#c4 version:uint32 capabilities:uint64

_PARAM_BITS, _LIBRARY_BITS = 32, 256
_CONFIGS_KEPT = 8
_PARAMS_KEPT = 64
"""Maximum number of cached parsed parameters, each for one time: calls of a commit share them."""


class NetworkConfig(msgspec.Struct, frozen=True):
    """The configuration of a key block: the whole as Hashmap 32 ^Cell, and its parameters."""

    root: bytes
    params: Mapping[int, bytes]

    @property
    def version(self) -> int:
        """Global version (ConfigParam 8); 0 if it is not set."""
        boc = self.params.get(VERSION_PARAM)
        return 0 if boc is None else _read_version(boc)


def join_params(params: Mapping[int, bytes]) -> bytes:
    """Return the dictionary of parameters, Hashmap 32 ^Cell; identical to that of the chain."""
    by_key = {number & (1 << _PARAM_BITS) - 1: boc for number, boc in params.items()}
    return _join_cells(by_key, _PARAM_BITS)


@lru_cache(_CONFIGS_KEPT)
def join_config(params: tuple[tuple[int, bytes], ...]) -> NetworkConfig:
    """Return the configuration with these parameters; cached, as most calls share it."""
    return NetworkConfig(join_params(dict(params)), dict(params))


def join_libraries(libraries: Mapping[bytes, bytes]) -> bytes | None:
    """Return Hashmap 256 ^Cell of libraries by hash; None if there are none."""
    if not libraries:
        return None
    by_key = {int.from_bytes(key, "big"): boc for key, boc in libraries.items()}
    return _join_cells(by_key, _LIBRARY_BITS)


def _join_cells(cells: Mapping[int, bytes], key_bits: int) -> bytes:
    tree = CellTree()
    entries = [(key, graft(tree, parse_boc(boc))) for key, boc in sorted(cells.items())]
    return serialize_boc(tree, [build_hashmap(tree, entries, key_bits)])


class PreviousBlocks(msgspec.Struct, frozen=True):
    """PrevBlocksInfo; an unknown part is None, and a contract that reads it fails."""

    last: Sequence[BlockId] | None = None
    """The newest 16, newest first."""
    key: BlockId | None = None
    """The newest key block."""
    hundredths: Sequence[BlockId] | None = None
    """The newest 16 of the blocks whose seqno is divisible by 100."""


class Context(msgspec.Struct, frozen=True):
    """The account and the time of a run; ``balance`` is in nanoton, ``now`` in Unix seconds."""

    workchain: int
    account: bytes
    now: int
    balance: int
    currencies: Mapping[int, int]
    config: bytes
    """Hashmap 32 ^Cell: all parameters."""
    version: int
    """Global version (ConfigParam 8)."""
    previous: PreviousBlocks | None
    """None: a contract that reads it is given null."""
    seed: bytes = bytes(32)
    """Random seed; a get-method has none."""


def make_version_param(version: int, capabilities: int = 0) -> bytes:
    """Return ConfigParam 8 with a global version and capabilities."""
    builder = CellBuilder().store_uint(VERSION_TAG, 8).store_uint(version, 32)
    return serialize_boc(builder.tree, [builder.store_uint(capabilities, 64).end()])


def make_context(workchain: int, account: bytes, version: int) -> Context:
    """Return the surroundings of a run outside the chain: a global version, and nothing else."""
    config = join_config(((VERSION_PARAM, make_version_param(version)),))
    return Context(
        workchain=workchain,
        account=account,
        now=0,
        balance=0,
        currencies={},
        config=config.root,
        version=version,
        previous=PreviousBlocks(),
    )


def build_previous(previous: PreviousBlocks, version: int) -> StackValue:
    """Return PrevBlocksInfo in the layout of a global version."""
    last, hundredths = (
        None if ids is None else tuple(map(_build_id, ids))
        for ids in (previous.last, previous.hundredths)
    )
    key = None if previous.key is None else _build_id(previous.key)
    return (last, key, hundredths) if version >= _HUNDREDTHS_SINCE else (last, key)


def _build_id(block: BlockId) -> StackValue:
    """Return [wc, shard, seqno, root_hash, file_hash]; the shard is signed, as in the node."""
    hashes = (int.from_bytes(digest, "big") for digest in (block.root_hash, block.file_hash))
    return block.workchain, block.shard, block.seqno, *hashes


@lru_cache(_PARAMS_KEPT)
def _read_version(boc: bytes) -> int:
    tree = parse_boc(boc)
    start = tree.slice(tree.roots[0])
    return start.load_uint(32) if start.load_uint(8) == VERSION_TAG else 0


SUCCESS = frozenset({0, 1})
"""Exit codes of normal and alternative termination."""

NO_CODE = -13
"""Exit code if there is no code to run: the bitwise not of 12 (fatal error)."""

_METHOD_MARK = 0x10000


class GetMethodCall(msgspec.Struct, frozen=True):
    """A get-method run; cells are bags; ``stack`` has the deepest value first, method id last."""

    code: bytes
    data: bytes | None
    stack: tuple[StackValue, ...]
    context: Context
    libraries: bytes | None = None
    """Hashmap 256 ^Cell: the libraries that library cells resolve to."""
    gas_limit: int | None = None
    """Gas limit; None uses the limit of the settings."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a run; ``stack`` has the deepest value first."""

    exit_code: int
    gas_used: int
    stack: tuple[StackValue, ...]


def method_id(name: str) -> int:
    """Return the id of a get-method: CRC-16/XMODEM of its name, with bit 16 set."""
    return binascii.crc_hqx(name.encode(), 0) | _METHOD_MARK


_HASH_BYTES, _LT_BITS = 32, 64


class EmulationCall(msgspec.Struct, frozen=True):
    """A transaction to emulate; cells are bags."""

    account: bytes
    """ShardAccount: the state before, and its last transaction."""
    message: bytes | None
    """External or internal message; None emulates a tick-tock transaction."""
    config: bytes
    """Hashmap 32 ^Cell: the configuration after the referenced masterchain block."""
    now: int
    """Unix time of the block."""
    lt: int
    """Minimum logical time of the transaction."""
    libraries: bytes | None = None
    """Hashmap 256 ^Cell: the libraries that library cells resolve to."""
    previous: StackValue = None
    """PrevBlocksInfo as of that masterchain block (module ``context``)."""
    rand_seed: bytes = bytes(_HASH_BYTES)
    """Random seed of the block."""
    ignore_chksig: bool = False
    """Whether every signature is accepted as valid."""
    is_tock: bool = False
    """Whether a tick-tock transaction is tock."""


class Emulated(msgspec.Struct, frozen=True, tag=True):
    """An emulated transaction, and the ShardAccount after it, as bags."""

    transaction: bytes
    account: bytes


class NotAccepted(msgspec.Struct, frozen=True, tag=True):
    """An external message that the contract does not accept: there is no transaction.

    ``exit_code`` is None if the run ended without one: the contract returned without accepting, or
    has no code.
    """

    exit_code: int | None


def join_shard_account(account: bytes | None, last_trans_hash: bytes, last_trans_lt: int) -> bytes:
    """Return ShardAccount: account_descr$_ account:^Account last_trans_hash last_trans_lt.

    If ``account`` is None, the state is account_none$0, as before the first message of an account.
    """
    if account is None:
        tree = CellTree()
        root = CellBuilder(tree).store_bit(0).end()
    else:
        tree = parse_boc(account)
        root = tree.roots[0]
    builder = CellBuilder(tree).store_ref(root).store_bytes(last_trans_hash)
    return serialize_boc(tree, [builder.store_uint(last_trans_lt, _LT_BITS).end()])


def split_shard_account(boc: bytes) -> tuple[bytes, bytes, int]:
    """Return Account as a bag, last_trans_hash and last_trans_lt of ShardAccount."""
    tree = parse_boc(boc)
    start = tree.slice(tree.roots[0])
    account = serialize_boc(tree, [start.load_ref()])
    return account, start.load_bytes(_HASH_BYTES), start.load_uint(_LT_BITS)
