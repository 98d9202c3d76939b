"""Converts arguments and results of get-methods to and from Python values."""

from __future__ import annotations

from typing import Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.text.encoding import Address, render_friendly
from tonlake.ingest.derive.contract import stack as parsed
from tonlake.ingest.errors import BocError


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
