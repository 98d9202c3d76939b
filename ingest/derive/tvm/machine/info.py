"""Builds SmartContractInfo, what a contract reads of its surroundings in a get-method: c7.

Fields 0 to 9 exist always, 10 to 13 since global version 4, 14 to 16 since 6, 17 since 11. Sources:
``crypto/vm/vm.cpp``, tonlib's SmartContract.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap, find_leaf, iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    VERSION_PARAM,
    VERSION_TAG,
    Context,
    build_previous,
    join_params,
    make_version_param,
)
from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell, Slice, Source

MAGIC = 0x076EF1EA
_STORAGE_PRICES = 18
_UNPACKED_PARAMS = (19, 20, 21, 24, 25, 43)
"""global_id, gas prices, forward prices (masterchain before workchains), size limits."""

_CODE_SINCE, _UNPACKED_SINCE, _MESSAGE_SINCE = 4, 6, 11
_CURRENCY_BITS, _AMOUNT_LENGTH_BITS = 32, 5  # HashmapE 32 (VarUInteger 32)
_ADDR_STD = 0b100  # addr_std$10 without anycast
_PARAM_BITS = 32
_CONFIGS_KEPT = 8
_NO_ADDRESS = Builder(0, 2).cell().slice()


class Config:
    """A configuration (Hashmap 32 ^Cell) as a cell, and its parameters that c7 holds unpacked."""

    def __init__(self, boc: bytes) -> None:
        """Parse the dictionary; raise BocError if it is no bag of cells."""
        self._source = Source(parse_boc(boc, check_crc=False))
        self._root = self._source.tree.roots[0]
        self.cell = self._source.cell(self._root)
        self._params: tuple[Slice | None, ...] | None = None
        self._prices: list[tuple[int, Slice]] | None = None

    def find(self, number: int) -> Cell | None:
        """Return a parameter; None if it is not set."""
        tree = self._source.tree
        found = find_leaf(tree, self._root, number & (1 << _PARAM_BITS) - 1, _PARAM_BITS)
        return None if found is None or not found.refs_left else self._source.cell(found.load_ref())

    @property
    def version(self) -> int:
        """Global version (ConfigParam 8); 0 if it is not set."""
        found = self.find(VERSION_PARAM)
        if found is None:
            return 0
        part = found.slice()
        return part.skip(8).peek(32) if part.peek(8) == VERSION_TAG else 0

    def unpack(self, now: int) -> tuple[Slice | None, ...]:
        """Return the parameters that fee instructions read; storage prices are those at ``now``."""
        if self._params is None or self._prices is None:
            cells = map(self.find, _UNPACKED_PARAMS)
            self._params = tuple(None if cell is None else cell.slice() for cell in cells)
            self._prices = self._list_prices()
        held = [price for since, price in self._prices if since <= now]
        return (held[-1] if held else None, *self._params)

    def _list_prices(self) -> list[tuple[int, Slice]]:
        """Return storage prices by the time since which they hold (Hashmap 32 StoragePrices)."""
        cell = self.find(_STORAGE_PRICES)
        place = None if cell is None else cell.origin
        if place is None:
            return []
        found = iter_hashmap(*place, _PARAM_BITS)
        return [(since, take_slice(self._source, start)) for since, start in found]


@lru_cache(_CONFIGS_KEPT)
def replace_version(boc: bytes, version: int) -> bytes:
    """Return a configuration with another global version and the same capabilities."""
    tree = parse_boc(boc)
    params = {
        number - (number >> 31 << 32): serialize_boc(tree, [value.load_ref()])
        for number, value in iter_hashmap(tree, tree.roots[0], _PARAM_BITS)
    }
    found = Config(boc).find(VERSION_PARAM)
    capabilities = 0 if found is None else found.slice().skip(8 + 32).peek(64)
    params[VERSION_PARAM] = make_version_param(version, capabilities)
    return join_params(params)


def take_slice(source: Source, start: CellSlice) -> Slice:
    """Return what is left of a slice of the source's tree."""
    cell = source.cell(start.cell)
    value, left = start.bits()
    if value != cell.value:  # it ends before the cell does
        refs = cell.refs[start.ref :]
        return Cell(value & (1 << left) - 1, left, refs).slice()
    return Slice(cell, cell.bits - start.bits_left, cell.bits, start.ref, len(cell.refs))


@lru_cache(_CONFIGS_KEPT)
def open_config(boc: bytes) -> Config:
    """Return a configuration; cached, as most runs share it."""
    return Config(boc)


def build_info(context: Context, code: Cell | None) -> tuple[Any, ...]:
    """Return SmartContractInfo for a get-method: no message, no lt."""
    config = open_config(context.config)
    balance = (context.balance, _build_currencies(context.currencies))
    head = _ADDR_STD << 8 | context.workchain & 0xFF
    address = Builder(head << 256 | int.from_bytes(context.account, "big"), 267).cell().slice()
    seed = int.from_bytes(context.seed, "big")
    info: list[Any] = [MAGIC, 0, 0, context.now, 0, 0, seed, balance, address, config.cell]
    version = context.version
    previous = None if context.previous is None else build_previous(context.previous, version)
    if version >= _CODE_SINCE:
        # my_code, in_msg_value, storage_fees, prev_blocks_info
        info += [code, (0, None), 0, previous]
    if version >= _UNPACKED_SINCE:
        # unpacked_config_tuple, due_payment, precompiled_gas_usage
        info += [config.unpack(context.now), 0, None]
    if version >= _MESSAGE_SINCE:
        # bounce, bounced, src, fwd_fee, created_lt, created_at, original and remaining value,
        # currencies, state_init
        info.append((0, 0, _NO_ADDRESS, 0, 0, 0, 0, 0, None, None))
    return tuple(info)


def _build_currencies(currencies: Mapping[int, int]) -> Cell | None:
    """Return the dictionary of ExtraCurrencyCollection; None if it is empty."""
    if not currencies:
        return None
    tree = CellTree()
    root = build_hashmap(tree, sorted(currencies.items()), _CURRENCY_BITS, store=_store_amount)
    return Source(tree).cell(root)


def _store_amount(node: CellBuilder, amount: int) -> None:
    node.store_var_uint(amount, _AMOUNT_LENGTH_BITS)
