"""What the methods take that run contracts, or hand messages on."""

from __future__ import annotations

from api.v2.arguments import AccountParams, Params, check_natural, refuse_unless
from api.v2.param import (
    AccountAddress,
    Bag,
    CellObject,
    Flag,
    Int32,
    MethodId,
    OptionalHash,
    RawList,
    Text,
)


class GetMethodParams(AccountParams, frozen=True, kw_only=True):
    """A get-method of an account, and its arguments, the deepest first."""

    method: MethodId
    stack: RawList = ()


class EstimateParams(Params, frozen=True, kw_only=True):
    """An external message in parts, as bags of cells; an empty one of the last two is none."""

    address: AccountAddress
    body: Bag
    init_code: Bag = b""
    init_data: Bag = b""
    ignore_chksig: Flag = True


class EstimateCellParams(Params, frozen=True, kw_only=True):
    """The same with each cell as an object of its data and its references."""

    address: AccountAddress
    body: CellObject
    init_code: CellObject = b""
    init_data: CellObject = b""
    ignore_chksig: Flag = True


class BagParams(Params, frozen=True, kw_only=True):
    """A message to be sent, as bag of cells."""

    boc: Bag

    def check(self, _max_limit: int, /) -> None:
        """The bag is not empty."""
        refuse_unless(bool(self.boc), "empty boc")


class CellParams(Params, frozen=True, kw_only=True):
    """A message to be sent, as an object of its data and its references."""

    cell: CellObject


class ResolveParams(AccountParams, frozen=True, kw_only=True):
    """A name to be asked of a resolver, and how many resolvers may be asked after it."""

    name: Text = ""
    category: OptionalHash = None
    ttl: Int32 = 0

    def check(self, max_limit: int, /) -> None:
        """Neither number is negative."""
        super().check(max_limit)
        check_natural(self.ttl, "ttl")
