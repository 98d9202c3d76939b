"""Builds c7, the context that a contract reads while a get-method runs.

SmartContractInfo of ``crypto/vm/vm.cpp`` and of tonlib's SmartContract: fields 0 to 9 always, 10 to
13 since global version 4, 14 to 16 since 6, 17 since 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.stack import StackValue, TvmCell, TvmSlice

MAGIC = 0x076EF1EA
VERSION_PARAM, _STORAGE_PRICES = 8, 18
_UNPACKED_PARAMS = (19, 20, 21, 24, 25, 43)
"""global_id, gas prices, forward prices (masterchain before workchains), size limits."""

_ALWAYS, _PREVIOUS = 10, 13
"""Number of fields of any version, and the place of PrevBlocksInfo."""

_CODE_SINCE, _UNPACKED_SINCE, _HUNDREDTHS_SINCE, _MESSAGE_SINCE = 4, 6, 9, 11
_VERSION_TAG = 0xC4  # capabilities#c4 version:uint32 capabilities:uint64
_CURRENCY_BITS, _AMOUNT_LENGTH_BITS = 32, 5  # HashmapE 32 (VarUInteger 32)
_ADDR_STD = 0b100  # addr_std$10 without anycast

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


class MasterId(msgspec.Struct, frozen=True):
    """The id of a masterchain block."""

    seqno: int
    root_hash: bytes
    file_hash: bytes


class PreviousBlocks(msgspec.Struct, frozen=True):
    """PrevBlocksInfo; an unknown part is None, and a contract that reads it fails."""

    last: Sequence[MasterId] | None = None
    """The newest 16, newest first."""
    key: MasterId | None = None
    """The newest key block."""
    hundredths: Sequence[MasterId] | None = None
    """The newest 16 of the blocks whose seqno is divisible by 100."""


class Context(msgspec.Struct, frozen=True):
    """The account and the time of a run; ``balance`` is in nanoton, ``now`` in Unix seconds."""

    workchain: int
    account: bytes
    now: int
    balance: int
    currencies: Mapping[int, int]
    code: bytes
    config: NetworkConfig
    previous: PreviousBlocks


def build_c7(context: Context) -> tuple[StackValue, ...]:
    """Return SmartContractInfo for a get-method: no message, no lt, a zero random seed."""
    config = context.config
    balance = (context.balance, _build_currencies(context.currencies))
    address = TvmSlice(_build_address(context.workchain, context.account))
    info: list[StackValue] = [MAGIC, 0, 0, context.now, 0, 0, 0, balance, address]
    info.append(TvmCell(config.root))
    version = config.version
    if version >= _CODE_SINCE:
        # my_code, in_msg_value, storage_fees, prev_blocks_info
        info += [TvmCell(context.code), (0, None), 0, build_previous(context.previous, version)]
    if version >= _UNPACKED_SINCE:
        # unpacked_config_tuple, due_payment, precompiled_gas_usage
        info += [_unpack_config(config, context.now), 0, None]
    if version >= _MESSAGE_SINCE:
        # bounce, bounced, src, fwd_fee, created_lt, created_at, original and remaining value,
        # currencies, state_init
        info.append((0, 0, _make_addr_none(), 0, 0, 0, 0, 0, None, None))
    return tuple(info)


class C7Facts(msgspec.Struct, frozen=True):
    """The facts that SmartContractInfo was built from; the configuration is the whole."""

    address: tuple[int, bytes]
    now: int
    balance: int
    currencies: Mapping[int, int]
    config: bytes
    previous: StackValue


def read_c7(info: Sequence[StackValue]) -> C7Facts:
    """Return the facts in a tuple that ``build_c7`` returned."""
    _magic, _actions, _messages, now, _block_lt, _lt, _seed, (balance, held), address, config = (
        info[:_ALWAYS]
    )
    tree = parse_boc(address.boc)
    start = tree.slice(tree.roots[0])
    start.skip(3)
    return C7Facts(
        address=(start.load_int(8), start.load_bytes(32)),
        now=now,
        balance=balance,
        currencies={} if held is None else _read_currencies(held.boc),
        config=config.boc,
        previous=info[_PREVIOUS] if len(info) > _PREVIOUS else None,
    )


def _read_currencies(boc: bytes) -> dict[int, int]:
    tree = parse_boc(boc)
    held = iter_hashmap(tree, tree.roots[0], _CURRENCY_BITS)
    return {number: amount.load_var_uint(_AMOUNT_LENGTH_BITS) for number, amount in held}


def make_version_param(version: int) -> bytes:
    """Return ConfigParam 8 with a global version and no capabilities."""
    builder = CellBuilder().store_uint(_VERSION_TAG, 8).store_uint(version, 32).store_uint(0, 64)
    return _write(builder)


@cache
def _make_addr_none() -> TvmSlice:
    return TvmSlice(_write(CellBuilder().store_uint(0, 2)))


def _build_address(workchain: int, account: bytes) -> bytes:
    builder = CellBuilder().store_uint(_ADDR_STD, 3)
    return _write(builder.store_int(workchain, 8).store_bytes(account))


def _build_currencies(currencies: Mapping[int, int]) -> TvmCell | None:
    """Return the dictionary of ExtraCurrencyCollection; null if it is empty."""
    if not currencies:
        return None
    tree = CellTree()
    root = build_hashmap(tree, sorted(currencies.items()), _CURRENCY_BITS, store=_store_amount)
    return TvmCell(serialize_boc(tree, [root]))


def _store_amount(node: CellBuilder, amount: int) -> None:
    node.store_var_uint(amount, _AMOUNT_LENGTH_BITS)


def build_previous(previous: PreviousBlocks, version: int) -> StackValue:
    """Return PrevBlocksInfo in the layout of a global version."""
    last, hundredths = (
        None if ids is None else tuple(map(_build_id, ids))
        for ids in (previous.last, previous.hundredths)
    )
    key = None if previous.key is None else _build_id(previous.key)
    return (last, key, hundredths) if version >= _HUNDREDTHS_SINCE else (last, key)


def _build_id(block: MasterId) -> StackValue:
    """Return [wc, shard, seqno, root_hash, file_hash]; the shard is signed, as in the node."""
    hashes = (int.from_bytes(digest, "big") for digest in (block.root_hash, block.file_hash))
    return -1, -(1 << 63), block.seqno, *hashes


@lru_cache(_PARAMS_KEPT)
def _read_version(boc: bytes) -> int:
    tree = parse_boc(boc)
    start = tree.slice(tree.roots[0])
    return start.load_uint(32) if start.load_uint(8) == _VERSION_TAG else 0


def _unpack_config(config: NetworkConfig, now: int) -> StackValue:
    """Return the parameters that fee instructions read, as slices; null for unset ones."""
    params = (config.params.get(number) for number in _UNPACKED_PARAMS)
    rest = [None if boc is None else TvmSlice(boc) for boc in params]
    return _find_storage_prices(config.params.get(_STORAGE_PRICES), now), *rest


@lru_cache(_PARAMS_KEPT)
def _find_storage_prices(boc: bytes | None, now: int) -> TvmSlice | None:
    """Return the prices in effect at ``now`` (ConfigParam 18: Hashmap 32 StoragePrices)."""
    if boc is None:
        return None
    tree = parse_boc(boc)
    held = [start for since, start in iter_hashmap(tree, tree.roots[0], 32) if since <= now]
    if not held:
        return None
    builder = CellBuilder(tree).store_slice(held[-1])
    return TvmSlice(serialize_boc(tree, [builder.end()]))


def _write(builder: CellBuilder) -> bytes:
    return serialize_boc(builder.tree, [builder.end()])
