"""Prices of jettons, computed from the swaps in the lake."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.request.params import ConversionError, Converter, OneAddress, Utime
from tonlake.api.text.address import parse_address
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.classified import check_classified
from tonlake.api.v3.page.coverage import check_no_gap, check_utime
from tonlake.api.v3.page.history import check_derived
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import Page, operation
from tonlake.api.v3.resource.answer import AddressBook, Metadata

if TYPE_CHECKING:
    from tonlake.api.request.call import Call

_INTERVALS = ("hour", "day")
_UTIMES = (0, 253_402_300_799)
"""Times that DuckDB and Python both support: up to the year 9999."""


def parse_interval(text: str) -> str:
    """Parse ``hour`` or ``day``."""
    if text not in _INTERVALS:
        raise ConversionError(text)
    return text


class PricesQuery(Page, frozen=True, kw_only=True):
    """A jetton (default: all), the interval (default: hour), and the time range."""

    jetton_address: OneAddress = None
    interval: Annotated[
        str | None, Converter(parse_interval, {"type": "string", "enum": [*_INTERVALS]})
    ] = None
    start_utime: Utime = None
    end_utime: Utime = None


class Price(msgspec.Struct, frozen=True):
    """Prices of one jetton, in TON for one whole jetton, in an interval that begins at ``utime``.

    ``volume`` is in whole jettons. For a day, ``pools`` is the largest number of pools in an hour.
    The prices in US dollars are the last ones; null if no jetton of ``[lake] stablecoins`` was
    traded.
    """

    jetton: str
    symbol: str | None
    utime: int
    open: float
    high: float
    low: float
    close: float
    volume_ton: float
    volume: float
    trades: int
    pools: int
    close_usd: float | None
    ton_usd: float | None


class Prices(msgspec.Struct, frozen=True):
    """Intervals with trades, newest first."""

    prices: list[Price]
    address_book: AddressBook
    metadata: Metadata


def get_prices(call: Call, query: PricesQuery) -> Prices:
    """List prices of jettons by hour or day.

    Raises:
        NotDerived: contracts of the lake were not detected, or its traces not classified.
        NotCovered: the lake covers none of the range, or has gaps in it.
    """
    check_derived(call)
    check_utime(call.reader, query.start_utime, query.end_utime)
    rows = call.reader.rows(
        "everyday/prices",
        jetton=None if query.jetton_address is None else str(query.jetton_address),
        daily=query.interval == "day",
        start=_read_time(query.start_utime),
        end=_read_time(query.end_utime),
        limit=query.limit,
        offset=query.offset,
    )
    check_classified(call, is_empty=not rows)
    if not rows:
        check_no_gap(call.reader, utime=(query.start_utime, query.end_utime))
    prices = [_describe(row) for row in rows]
    jettons = sorted({parse_address(price.jetton) for price in prices})
    return Prices(
        prices=prices,
        address_book=read_address_book(call, jettons),
        metadata=read_metadata(call, jettons),
    )


def _read_time(utime: int | None) -> datetime | None:
    if utime is None:
        return None
    low, high = _UTIMES
    return datetime.fromtimestamp(min(max(utime, low), high), UTC).replace(tzinfo=None)


def _describe(row: dict[str, Any]) -> Price:
    utime = int(row["time"].replace(tzinfo=UTC).timestamp())
    return Price(utime=utime, **{name: row[name] for name in row.keys() - {"time"}})


routes = [operation("/prices", PricesQuery, get_prices)]
"""Every operation below ``/api/x``."""
