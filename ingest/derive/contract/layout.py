"""Shared code of readers: they answer get-methods of standard contracts from data cells.

A reader takes an account with the arguments of a get-method, and returns the stack that the code
would leave, deepest value first. It raises BocError or Mismatch if it cannot answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tonlake.ingest.decode.cell.build import CellBuilder, pack_head
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import hash_plain
from tonlake.ingest.derive.contract.stack import Address, Cell, Mismatch, Value, load_address

TRUE, FALSE = -1, 0
_STD_BITS, _NONE_BITS = 267, 2
_STATE_INIT = pack_head(2, 0b00110, 5)
"""No fixed_prefix_length, not special; references to code and data; no library."""


class Subject(NamedTuple):
    """The subject of a get-method call: an account with its code and data, and the arguments."""

    address: Address
    code: Cell
    data: Cell
    arguments: Sequence[Value]


Reader = Callable[[Subject], list[Value]]


def load_address_slice(start: CellSlice) -> CellSlice:
    """Read MsgAddress and return it as a separate slice, as LDMSGADDR does.

    Raises:
        Mismatch: it is neither addr_std nor addr_none.
    """
    kept = start.copy()
    load_address(start)
    return kept.load_slice(kept.bits_left - start.bits_left)


def take_address(value: Value) -> Address:
    """Return an argument as an address; raise Mismatch for anything else."""
    if not isinstance(value, CellSlice):
        raise Mismatch("argument is not a slice")
    found = load_address(value.copy())
    if found is None:
        raise Mismatch("argument is addr_none")
    return found


def take_integer(value: Value) -> int:
    """Return an argument as an integer; raise Mismatch for anything else."""
    if not isinstance(value, int):
        raise Mismatch("argument is not an integer")
    return value


def hash_state_init(code: Cell, data: CellBuilder) -> bytes:
    """Return the hash of StateInit, the account id; ``data`` is built in the code's tree."""
    return hash_plain(_STATE_INIT, (code.hash, code.tree.depth(code.root)), data.digest())[0]


def store_address(builder: CellBuilder, address: Address) -> CellBuilder:
    """Store addr_std without anycast."""
    builder.store_uint(0b100, 3).store_int(address.workchain, 8)
    return builder.store_bytes(address.account)


def make_cell(start: CellSlice) -> Cell:
    """Read a reference and return its cell."""
    return Cell(start.tree, start.load_ref())


def make_maybe_cell(start: CellSlice) -> Cell | None:
    """Read ``Maybe ^Cell``."""
    found = start.load_maybe_ref()
    return None if found is None else Cell(start.tree, found)


def expect_end(start: CellSlice) -> None:
    """Raise Mismatch if data are left, as ENDS would."""
    if start.bits_left or start.refs_left:
        raise Mismatch("data left after the last field")


def expect_arguments(subject: Subject, count: int) -> Subject:
    """Return the subject; raise Mismatch if it does not have ``count`` arguments."""
    if len(subject.arguments) != count:
        raise Mismatch(f"expected {count} arguments, got {len(subject.arguments)}")
    return subject
