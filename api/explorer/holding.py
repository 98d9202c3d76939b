"""Lists the jettons of an account with their value, and its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.explorer.frame import Question, read_offset
from tonlake.api.explorer.words.movement import TON
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.transaction import Message
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.route.block import MessagesQuery, find_rows, list_ends
from tonlake.api.v3.route.token import JettonWallet, WalletsQuery, get_wallets

if TYPE_CHECKING:
    from tonlake.api.text.encoding import Address

ROWS = 20
RECEIVED, SENT, EXTERNAL = WAYS = ("in", "out", "external")
"""Message filters: from other accounts, sent, from outside the chain."""


class Price(msgspec.Struct, frozen=True):
    """The price of one unit of a jetton; ``usd`` is None if the price of TON is unknown."""

    ton: float
    usd: float | None
    utime: int


class Holding(msgspec.Struct, frozen=True):
    """A jetton wallet and the value of its balance; None if no price is known."""

    wallet: JettonWallet
    ton: float | None = None
    usd: float | None = None
    utime: int | None = None
    """Unix seconds of the hour that the price belongs to."""


class AccountMessage(msgspec.Struct, frozen=True):
    """A message of an account; ``sent`` if the account is the source."""

    message: Message
    sent: bool


def list_holdings(question: Question, address: Address) -> tuple[list[Holding], Price | None]:
    """Return one page of an account's jettons, and the price of TON if known."""
    query = WalletsQuery(owner_address=(address,), limit=ROWS, offset=read_offset(question))
    wallets = question.ask(get_wallets, query).jetton_wallets
    prices = read_prices(question, [wallet.jetton for wallet in wallets])
    valued = [_value(question, wallet, prices.get(wallet.jetton)) for wallet in wallets]
    return valued, prices.get(TON)


def _value(question: Question, wallet: JettonWallet, price: Price | None) -> Holding:
    if price is None:
        return Holding(wallet)
    units = int(wallet.balance) / 10 ** question.names.digits(wallet.jetton)
    usd = None if price.usd is None else units * price.usd
    return Holding(wallet, units * price.ton, usd, price.utime)


def read_prices(question: Question, jettons: list[str]) -> dict[str, Price]:
    """Return the newest known prices by raw address of the jetton; of TON under ``TON``."""
    reader = question.call.reader
    if not reader.snapshot.files["dex_swaps"]:
        return {}
    rows = reader.rows("explorer/prices", jettons=jettons)
    return {row["address"]: Price(row["ton"], row["usd"], row["utime"]) for row in rows}


def list_messages(question: Question, address: Address) -> list[AccountMessage]:
    """Return one page of the messages that an account received or sent, newest first."""
    way = question.argument("way")
    sent = way == SENT
    query = MessagesQuery(
        source=address if sent else None,
        destination=None if sent else address,
        limit=ROWS,
        offset=read_offset(question),
        sort="desc",
        exclude_externals=way not in (SENT, EXTERNAL),
        only_externals=way == EXTERNAL,
    )
    rows: list[Any] = find_rows(question.call, query)
    named = set(list_ends(rows))
    question.names.learn(
        read_address_book(question.call, named), read_metadata(question.call, named)
    )
    build = make_builder(Message, question.call.settings.http.opcode_format)
    return [AccountMessage(build((row,)), sent) for row in rows]
