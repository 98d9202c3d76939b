"""Runs get-methods; builds SmartContractInfo, what a contract reads of its surroundings (c7).

Fields 0 to 9 of c7 exist always, 10 to 13 since global version 4, 14 to 16 since 6, 17 since 11.
Sources: ``crypto/vm/vm.cpp``, tonlib's SmartContract.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

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
    GetMethodCall,
    Outcome,
    StackLimits,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmNan,
    TvmOpaque,
    TvmSlice,
    build_previous,
    join_params,
    make_version_param,
)
from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Builder, Cell, Slice, Source, plant
from tonlake.ingest.derive.tvm.machine.instruction import decode
from tonlake.ingest.derive.tvm.machine.state import NAN, Machine
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

VERSION = 15
"""The highest global version whose instructions and rules the machine has."""

_CODES_KEPT = 256
_PAIR = 2


class Ended(NamedTuple):
    """What a run leaves."""

    exit_code: int
    gas_used: int
    stack: list[Any]
    depends: int


def execute(
    code: Cell,
    data: Cell,
    stack: Sequence[Any],
    context: Context,
    gas_limit: int,
    libraries: Callable[[bytes], Cell | None] = lambda _hash: None,
) -> Ended:
    """Run a code; ``stack`` has the deepest value first, usually the method id last.

    ``libraries`` finds the library cells of the network by hash.
    """
    # Code in an exotic cell is reached by an implicit jump, which resolves a library.
    start = Cell(0, 0, (code,)).slice() if code.special else code.slice()
    machine = Machine(
        start,
        data,
        list(stack),
        (build_info(context, code),),
        decode,
        version=context.version,
        gas_limit=gas_limit,
        libraries=libraries,
    )
    exit_code = machine.run()
    return Ended(exit_code, machine.gas_used, machine.stack, machine.depends)


def open_bag(boc: bytes) -> Cell:
    """Return the root of a bag; raise BocError if it is none."""
    tree = parse_boc(boc)
    return Source(tree).cell(tree.roots[0])


open_code = lru_cache(_CODES_KEPT)(open_bag)
"""Codes and libraries, whose decoded instructions are kept with them."""


def run_call(call: GetMethodCall, limits: StackLimits) -> Outcome:
    """Run a get-method of bags; raise BocError, TvmStackDeep or TvmStackLarge."""
    data = EMPTY_CELL if call.data is None else open_bag(call.data)
    libraries = (lambda _hash: None) if call.libraries is None else _open_libraries(call.libraries)
    ended = execute(
        open_code(call.code),
        data,
        [*map(enter_value, call.stack)],
        call.context,
        call.gas_limit or 0,
        libraries,
    )
    return Outcome(ended.exit_code, ended.gas_used, StackExporter(limits).read(ended.stack))


@lru_cache(8)
def _open_libraries(boc: bytes) -> Callable[[bytes], Cell | None]:
    """Return a look-up in Hashmap 256 ^Cell."""
    tree = parse_boc(boc)
    source = Source(tree)

    def find(wanted: bytes) -> Cell | None:
        leaf = find_leaf(tree, tree.roots[0], int.from_bytes(wanted, "big"), _HASH_BITS)
        return None if leaf is None else source.cell(leaf.load_ref())

    return find


def enter_value(value: StackValue) -> Any:  # noqa: ANN401, PLR0911 - a value of the machine
    """Return a value of bags as a value of the machine; raise BocError if a bag is none."""
    if isinstance(value, TvmCell):
        return open_bag(value.boc)
    if isinstance(value, TvmSlice):
        return open_bag(value.boc).slice()
    if isinstance(value, TvmBuilder):
        cell = open_bag(value.boc)
        return Builder(cell.value, cell.bits, cell.refs)
    if isinstance(value, TvmNan):
        return NAN
    if isinstance(value, tuple):
        return tuple(map(enter_value, value))
    if isinstance(value, list):
        pairs: Any = None
        for item in reversed(value):
            pairs = (enter_value(item), pairs)
        return pairs
    return value


def close_slice(part: Slice) -> Cell:
    """Return a cell with the content of a slice."""
    cell = part.cell
    if not part.start and part.end == cell.bits and part.ref_count == len(cell.refs):
        return cell
    return Cell(part.uint(), part.bits, part.refs)


class StackExporter:
    """Reads a stack within limits: shared values are written out each time."""

    def __init__(self, limits: StackLimits) -> None:
        self._limits = limits
        self._entries_left = limits.entries
        self._bytes_left = limits.boc_bytes

    def read(self, stack: Sequence[Any]) -> tuple[StackValue, ...]:
        """Return values of the machine as values of bags; raise TvmStackDeep or TvmStackLarge."""
        if len(stack) > self._entries_left:
            raise TvmStackLarge(f"the stack has {len(stack)} entries")
        return tuple(self._value(value, 0) for value in stack)

    def _value(self, value: Any, depth: int) -> StackValue:  # noqa: ANN401, PLR0911
        self._entries_left -= 1
        if self._entries_left < 0:
            raise TvmStackLarge(f"the stack has more than {self._limits.entries} values")
        if value is None or value.__class__ is int:
            return value
        if value is NAN:
            return TvmNan()
        if value.__class__ is tuple:
            return self._tuple(value, depth + 1)
        if value.__class__ is Cell:
            return TvmCell(self._bag(value))
        if value.__class__ is Slice:
            return TvmSlice(self._bag(close_slice(value)))
        if value.__class__ is Builder:
            return TvmBuilder(self._bag(Cell(value.value, value.bits, value.refs)))
        return TvmOpaque()

    def _tuple(self, values: tuple[Any, ...], depth: int) -> StackValue:
        """Read a tuple, or a list if the tuple is its first pair."""
        self._check_depth(depth)
        if len(values) != _PAIR:
            return tuple(self._value(value, depth) for value in values)
        spine = [values[0]]
        tail = values[1]
        while tail.__class__ is tuple and len(tail) == _PAIR:
            spine.append(tail[0])
            tail = tail[1]
            if len(spine) > self._entries_left:
                raise TvmStackLarge(f"a list on the stack has more than {len(spine) - 1} values")
        if tail is None:
            return [self._value(value, depth) for value in spine]
        self._check_depth(depth + len(spine) - 1)
        read = self._value(tail, depth + len(spine) - 1)
        for place in range(len(spine) - 1, -1, -1):
            read = (self._value(spine[place], depth + place), read)
        return read

    def _check_depth(self, depth: int) -> None:
        if depth >= self._limits.depth:
            raise TvmStackDeep(f"the stack is nested {depth} levels deep")

    def _bag(self, cell: Cell) -> bytes:
        """Return a cell as a canonical bag with checksum, the form of all returned bags."""
        tree, place = plant(cell)
        boc = serialize_boc(tree, [place], crc32c=True)
        self._bytes_left -= len(boc)
        if self._bytes_left < 0:
            raise TvmStackLarge(f"cells of the stack have over {self._limits.boc_bytes} bytes")
        return boc


MAGIC = 0x076EF1EA
_STORAGE_PRICES, _PRECOMPILED = 18, 45
_UNPACKED_PARAMS = (19, 20, 21, 24, 25, 43)
"""global_id, gas prices, forward prices (masterchain before workchains), size limits."""

_CODE_SINCE, _UNPACKED_SINCE, _MESSAGE_SINCE = 4, 6, 11
_CURRENCY_BITS, _AMOUNT_LENGTH_BITS = 32, 5  # HashmapE 32 (VarUInteger 32)
_ADDR_STD = 0b100  # addr_std$10 without anycast
_PARAM_BITS, _HASH_BITS, _TAG_BITS, _GAS_BITS = 32, 256, 8, 64
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
        self._precompiled: dict[int, int] | None = None

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

    def find_precompiled_gas(self, code: Cell | None) -> int | None:
        """Return the gas that a precompiled contract uses; None for any other code."""
        if self._precompiled is None:
            self._precompiled = self._list_precompiled()
        if not self._precompiled or code is None:  # most networks have none: no code is hashed
            return None
        return self._precompiled.get(int.from_bytes(code.hash, "big"))

    def _list_prices(self) -> list[tuple[int, Slice]]:
        """Return storage prices by the time since which they hold (Hashmap 32 StoragePrices)."""
        cell = self.find(_STORAGE_PRICES)
        place = None if cell is None else cell.origin
        if place is None:
            return []
        found = iter_hashmap(*place, _PARAM_BITS)
        return [(since, take_slice(self._source, start)) for since, start in found]

    def _list_precompiled(self) -> dict[int, int]:
        """Return gas_usage by code hash (PrecompiledContractsConfig)."""
        cell = self.find(_PRECOMPILED)
        place = None if cell is None else cell.origin
        if place is None:
            return {}
        tree = place[0]
        root = tree.slice(place[1]).skip(_TAG_BITS).load_maybe_ref()
        found = () if root is None else iter_hashmap(tree, root, _HASH_BITS)
        return {code: start.skip(_TAG_BITS).load_uint(_GAS_BITS) for code, start in found}


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
    if value != cell.value or left > cell.bits:  # it is no end of the cell
        refs = cell.refs[start.ref :]
        return Cell(value & (1 << left) - 1, left, refs).slice()
    return Slice(cell, cell.bits - start.bits_left, cell.bits, start.ref, len(cell.refs))


open_config = lru_cache(_CONFIGS_KEPT)(Config)
"""Configurations, which most runs share."""


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
        info += [config.unpack(context.now), 0, config.find_precompiled_gas(code)]
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
    store = partial(CellBuilder.store_var_uint, length_bits=_AMOUNT_LENGTH_BITS)
    root = build_hashmap(tree, sorted(currencies.items()), _CURRENCY_BITS, store)
    return Source(tree).cell(root)
