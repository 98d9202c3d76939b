"""Values of get-methods, and the questions and findings of detectors.

An integer is an ``int``, a cell is ``Cell``, a slice is CellSlice, null is None, a tuple is a
``tuple``. ``Results`` reads them from a stack by the type that a detector expects.

A detector is a generator. It yields questions, is sent the stack of each answer, and returns its
findings. If an answer fails or has another shape, Mismatch is raised inside it: the account is no
such contract. The detector reads sequentially, while its driver may batch the questions of many.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError
from tonlake.lake.account import read_raw_address
from tonlake.lake.schema import Table

_NONE, _EXTERN, _STD, _VAR = range(4)
_PLAIN_STD = 0b100
_ADDRESS_BITS = 267
_INT8_LIMIT = 1 << 7
AMOUNT_LIMIT = 10**38
"""First amount that does not fit into an amount column; Coins have at most 120 bits."""

_INT64_LIMIT = 1 << 63

Value = Any
"""int, None, Cell, CellSlice, or a tuple or list of these."""


class Mismatch(Exception):
    """An answer that does not have the shape that a contract of this kind returns."""


class Cell(NamedTuple):
    """A cell of a tree."""

    tree: CellTree
    root: int

    def slice(self) -> CellSlice:
        """Return a reader at the start of the cell."""
        return self.tree.slice(self.root)

    @property
    def hash(self) -> bytes:
        """The representation hash."""
        return self.tree.hash(self.root)

    def boc(self) -> bytes:
        """Return the cell as a bag of cells with checksum."""
        return serialize_boc(self.tree, [self.root], crc32c=True)

    def bag(self) -> bytes:
        """Return the cell as a bag of cells for another local process, without checksum."""
        return serialize_boc(self.tree, [self.root])


class AddrStd(NamedTuple):
    """addr_std: workchain and account id."""

    workchain: int
    account: bytes

    def __str__(self) -> str:
        """Return the raw form, with uppercase digits."""
        return f"{self.workchain}:{self.account.hex().upper()}"

    def slice(self) -> CellSlice:
        """Return the address as a slice; raise BocError if the workchain exceeds 8 bits."""
        if not -_INT8_LIMIT <= self.workchain < _INT8_LIMIT:
            raise BocError(f"{self}: addr_std has a workchain of 8 bits")
        head = _PLAIN_STD << 8 | self.workchain & 2 * _INT8_LIMIT - 1
        return make_slice(head << 256 | int.from_bytes(self.account, "big"), _ADDRESS_BITS)


_EMPTY = CellBuilder()
_EMPTY_CELL = _EMPTY.end()


def make_slice(value: int, bits: int) -> CellSlice:
    """Return a slice of ``bits`` bits without references."""
    return CellSlice.at(_EMPTY.tree, _EMPTY_CELL, value, bits)


def load_address(start: CellSlice) -> AddrStd | None:
    """Read addr_std without anycast, None for addr_none. Raises Mismatch, CellUnderflow."""
    tag = start.load_uint(2)
    if tag == _NONE:
        return None
    if tag != _STD or start.load_bit():
        raise Mismatch("the address is neither addr_std nor addr_none")
    return AddrStd(start.load_int(8), start.load_bytes(32))


def load_any_address(start: CellSlice) -> AddrStd | None:
    """Read MsgAddress of any kind; return addr_std without anycast, None for all others."""
    kept = start.copy()
    kind = start.load_uint(2)
    if kind == _EXTERN:
        start.skip(start.load_uint(9))
    elif kind != _NONE:
        is_plain = not start.load_bit()
        if not is_plain:
            start.skip(start.load_uint(5))
        start.skip(start.load_uint(9) + 32 if kind == _VAR else 8 + 256)
        if is_plain and kind == _STD:
            return load_address(kept)
    return None


def parse_address(text: str) -> AddrStd:
    """Return the address with a raw form, ``workchain:HEX``; raise ValueError if it is none."""
    found = read_raw_address(text)
    if found is None:
        raise ValueError(f"{text!r} is not an address")
    return AddrStd(*found)


class Results:
    """A stack, read from the deepest value up; raises Mismatch at a value of another type."""

    def __init__(self, stack: Sequence[Value], count: int, *, more: bool = False) -> None:
        """Expect exactly ``count`` values, or at least ``count`` with ``more``."""
        if len(stack) < count or (len(stack) > count and not more):
            raise Mismatch(f"expected {count} values, got {len(stack)}")
        self._values = iter(stack)

    def take(self) -> Value:
        """Return the next value, of any type."""
        return next(self._values)

    def integer(self) -> int:
        """Return an integer of the TVM."""
        value = self.take()
        if not isinstance(value, int):
            raise Mismatch("expected an integer")
        return value

    def amount(self) -> int:
        """Return a non-negative number of at most 38 digits."""
        value = self.integer()
        if not 0 <= value < AMOUNT_LIMIT:
            raise Mismatch("expected an amount")
        return value

    def small(self) -> int:
        """Return an integer of 64 bits."""
        value = self.integer()
        if not -_INT64_LIMIT <= value < _INT64_LIMIT:
            raise Mismatch("the integer has more than 64 bits")
        return value

    def boolean(self) -> bool:
        """Return whether an integer is not 0."""
        return self.integer() != 0

    def cell(self) -> Cell:
        """Return a cell."""
        value = self.take()
        if not isinstance(value, Cell):
            raise Mismatch("expected a cell")
        return value

    def maybe_cell(self) -> Cell | None:
        """Return a cell, or None for null."""
        value = self.take()
        if value is not None and not isinstance(value, Cell):
            raise Mismatch("expected a cell or null")
        return value

    def text(self) -> str:
        """Return an integer as decimal text."""
        return str(self.integer())

    def address(self) -> AddrStd | None:
        """Return the address at the start of a slice; None for addr_none and for null."""
        value = self.take()
        if value is None:
            return None
        if not isinstance(value, CellSlice):
            raise Mismatch("expected a slice")
        return load_address(value.copy())

    def required_address(self) -> AddrStd:
        """Return an address; raise Mismatch for addr_none and null."""
        found = self.address()
        if found is None:
            raise Mismatch("expected an address")
        return found

    def raw_address(self) -> str | None:
        """Return the raw form of an address, None for addr_none and null."""
        return raw_text(self.address())

    def read(self, layout: str) -> dict[str, Any]:
        """Return columns by a layout: ``small start end, address owner`` (which has two)."""
        row: dict[str, Any] = {}
        for part in layout.split(","):
            kind, *names = part.split()
            for name in names:
                value = getattr(self, kind)()
                is_address = kind in ("address", "required_address")
                row |= address_fields(name, value) if is_address else {name: value}
        return row


class GetMethod(NamedTuple):
    """A call of a get-method; if it fails and is not ``required``, the detector is sent None."""

    address: AddrStd
    method: str
    arguments: tuple[Value, ...] = ()
    required: bool = True


class Finding(NamedTuple):
    """A row of a contract table, without the columns about the account."""

    table: str
    fields: dict[str, Any]


Detection = Generator[GetMethod, Any, list[Finding]]

Detector = Callable[[AddrStd], Detection]


class Trigger(NamedTuple):
    """A detector, the method that a code must have, their table, and the codes it is limited to."""

    method: str
    table: Table
    detector: Detector
    codes: frozenset[bytes] | None = None


def address_fields(name: str, address: AddrStd | None) -> dict[str, Any]:
    """Return the two columns of an address."""
    workchain, account = (None, None) if address is None else address
    return {f"{name}_workchain": workchain, name: account}


def raw_text(address: AddrStd | None) -> str | None:
    """Return the raw form of an address, None for None."""
    return None if address is None else str(address)
