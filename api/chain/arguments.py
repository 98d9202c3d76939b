"""Parameters shared by v2 and v3: accounts, get-methods and fee estimates."""

from __future__ import annotations

from tonlake.api.chain.param import (
    AccountAddress,
    Bag,
    CellObject,
    Flag,
    MethodId,
    OptionalPositive,
    RawList,
)
from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Query


class Params(Query, frozen=True, kw_only=True):
    """Parameters of one API method."""

    def check(self, _max_limit: int, /) -> None:
        """Check rules beyond types: a seqno is positive; methods add their own.

        Raises:
            RequestInvalid: a rule is violated.
        """
        seqno = getattr(self, "seqno", None)
        refuse_unless(seqno is None or seqno > 0, "seqno should be positive")


class AccountParams(Params, frozen=True, kw_only=True):
    """An account after the masterchain block ``seqno``, or the newest one."""

    address: AccountAddress
    seqno: OptionalPositive = None


class GetMethodParams(AccountParams, frozen=True, kw_only=True):
    """A get-method of an account, and its arguments, deepest in the stack first."""

    method: MethodId
    stack: RawList = ()


class EstimateParams(Params, frozen=True, kw_only=True):
    """An external message in parts, as bags of cells; empty code or data means none."""

    address: AccountAddress
    body: Bag
    init_code: Bag = b""
    init_data: Bag = b""
    ignore_chksig: Flag = True


class EstimateCellParams(Params, frozen=True, kw_only=True):
    """As ``EstimateParams``, with each cell as an object of data and references."""

    address: AccountAddress
    body: CellObject
    init_code: CellObject = b""
    init_data: CellObject = b""
    ignore_chksig: Flag = True


def refuse_unless(kept: bool, rule: str) -> None:  # noqa: FBT001 - the outcome of a rule
    """Raise RequestInvalid with ``rule`` unless it is ``kept``."""
    if not kept:
        raise RequestInvalid(rule)


def check_natural(number: int | None, name: str) -> None:
    """Raise RequestInvalid if ``number`` is negative."""
    refuse_unless(number is None or number >= 0, f"{name} should be non-negative")
