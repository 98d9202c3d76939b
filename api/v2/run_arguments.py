"""What the methods take that run contracts, or hand messages on."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from api.settings import HttpSettings


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

    def check(self, settings: HttpSettings) -> None:
        """The bag is not empty."""
        del settings
        refuse_unless(bool(self.boc), "empty boc")


class CellParams(Params, frozen=True, kw_only=True):
    """A message to be sent, as an object of its data and its references."""

    cell: CellObject


class ResolveParams(AccountParams, frozen=True, kw_only=True):
    """A name to be asked of a resolver, and how many resolvers may be asked after it."""

    name: Text = ""
    category: OptionalHash = None
    ttl: Int32 = 0

    def check(self, settings: HttpSettings) -> None:
        """Neither number is negative."""
        super().check(settings)
        check_natural(self.ttl, "ttl")
