"""Newest rows of token contracts by account, from segments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.answer.contracts import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.segment.contracts import RunTable

Row = dict[str, Any]


def _find_newest(name: str, index: Index, asked: Mapping[str, Any]) -> list[Row]:
    tables = index.tables(name)
    accounts = sorted(set(zip(asked["workchains"], asked["accounts"], strict=True)))
    found = (_find_row(tables, account) for account in accounts)
    return [row for row in found if row is not None]


def _find_row(tables: Sequence[RunTable], account: tuple[int, bytes]) -> Row | None:
    for table in reversed(tables):
        for number in reversed(table.list_rows("account", account[1])):
            row = table.read(number)
            if address_of(row, "account") == account:
                return row
    return None


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Row]]] = {
    "v3/token_collections": partial(_find_newest, "nft_collections"),
    "v3/token_items": partial(_find_newest, "nft_items"),
    "v3/token_masters": partial(_find_newest, "jetton_masters"),
    "v3/token_wallets": partial(_find_newest, "jetton_wallets"),
}
