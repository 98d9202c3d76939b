"""Converts arguments and results of get-methods to and from Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.text.address import Address, parse_address, render_friendly
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract import stack as parsed
from tonlake.ingest.derive.contract.layout import store_address
from tonlake.ingest.derive.tvm.stack import (
    INTEGER_BITS,
    TvmBuilder,
    TvmCell,
    TvmSlice,
    fits_integer,
)
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from tonlake.ingest.derive.tvm.stack import StackValue


class MethodResult(msgspec.Struct, frozen=True):
    """The outcome of a get-method; ``stack`` has the deepest value first.

    A value is an int, None, a TvmCell or TvmSlice with its ``boc``, or a tuple or list of these.
    """

    exit_code: int
    gas_used: int
    stack: list[Any]
    test_only: bool = False

    def address(self, at: int = 0) -> str | None:
        """Return the friendly address in cell or slice ``at``; None for addr_none.

        Raises:
            RequestInvalid: the value is not an address.
        """
        try:
            value = parsed.from_tvm(self.stack[at])
            start = value.slice() if isinstance(value, parsed.Cell) else value
            found = None if start is None else parsed.load_address(start.copy())
        except (parsed.Mismatch, BocError, AttributeError) as error:
            raise RequestInvalid(f"value {at} of the stack is not an address") from error
        if found is None:
            return None
        address = Address(found.workchain, found.account)
        return render_friendly(address, bounceable=True, test_only=self.test_only)


def read_argument(value: object) -> StackValue:
    """Convert an argument of a get-method to a stack value.

    Raises:
        TypeError, AddressInvalid: ``value`` cannot be converted.
        RequestInvalid: an integer has more than 257 bits.
    """
    if isinstance(value, str):
        found = parse_address(value)
        tree = CellTree()
        address = parsed.Address(found.workchain, found.account)
        return TvmSlice(serialize_boc(tree, [store_address(CellBuilder(tree), address).end()]))
    if isinstance(value, bytes):
        return TvmCell(value)
    if isinstance(value, tuple | list):
        return type(value)(map(read_argument, value))
    if isinstance(value, int) and not fits_integer(value):
        raise RequestInvalid(f"{value:#x} has more than the {INTEGER_BITS} bits of a TVM integer")
    if value is None or isinstance(value, int | TvmCell | TvmSlice | TvmBuilder):
        return value
    raise TypeError(
        f"a get-method does not take {type(value).__name__}: pass an int, None, an address as "
        "text, a bag of cells as bytes, or a stack value"
    )
