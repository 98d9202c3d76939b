"""Renders an account page: state, QR code, jettons with their value, NFTs and history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import segno

from tonlake.api.explorer import chart
from tonlake.api.explorer.contract.tab import show_contract
from tonlake.api.explorer.frame import Question, Shown, ask_or_say, link, read_address, read_offset
from tonlake.api.explorer.history import list_history
from tonlake.api.explorer.transaction import ask_transactions
from tonlake.api.explorer.words.movement import TON
from tonlake.api.explorer.words.names import list_certain
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.transaction import Message
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.transaction_page import TransactionsQuery, find_keys
from tonlake.api.v3.route.account import (
    AccountStatesQuery,
    WalletStatesQuery,
    get_account_states,
    get_wallet_states,
)
from tonlake.api.v3.route.block import MessagesQuery, find_rows, list_ends
from tonlake.api.v3.route.contract import RecordsQuery, get_records
from tonlake.api.v3.route.token import (
    ItemsQuery,
    JettonWallet,
    WalletsQuery,
    get_items,
    get_wallets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.explorer.contract.tab import Contract
    from tonlake.api.explorer.history import HistoryPage
    from tonlake.api.text.encoding import Address
    from tonlake.api.v3.resource.answer import Metadata, WalletState


QUIET = 4
"""Width of the quiet zone in modules (ISO/IEC 18004)."""


class Code(msgspec.Struct, frozen=True):
    """A QR code: side length in modules, quiet zone included, and the path of dark modules."""

    size: int
    path: str


def draw_code(text: str) -> Code:
    """Return the QR code of ``text`` with error correction level M."""
    modules = [list(row) for row in segno.make(text, error="m", micro=False).matrix]
    path = "".join(
        f"M{x + QUIET} {y + QUIET}h1v1h-1z"
        for y, row in enumerate(modules)
        for x, dark in enumerate(row)
        if dark
    )
    return Code(len(modules) + 2 * QUIET, path)


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


Values = dict[str, Any]

TOKEN_PAGES = {
    "jetton_masters": ("jetton", "Jetton page"),
    "nft_items": ("nft", "NFT page"),
    "nft_collections": ("nft", "Collection page"),
}
CHART_ROWS = 500
"""Maximum points of the balance chart; longer histories show the newest ones."""


def show_account(question: Question) -> Shown:
    """Show an account: its state, its balance over time and the selected tab."""
    address = read_address(question)
    states = get_account_states(
        question.call, AccountStatesQuery(address=(address,), include_boc=False)
    )
    question.names.learn(states.address_book, states.metadata)
    state = next(iter(states.accounts), None)
    raw = str(address)
    shown = question.argument("show")
    shown = shown if shown in LISTS else next(iter(LISTS))
    values: Values = {
        "raw": raw,
        "friendly": question.names.friendly(raw),
        "way": way if (way := question.argument("way")) in WAYS else WAYS[0],
        "code": draw_code(f"ton://transfer/{question.names.friendly(raw)}"),
        "watched": raw,
        "is_newest": not any(map(question.argument, ("offset", "cursor"))),
        "state": state,
        "interfaces": list_certain((state and state.interfaces) or ()),
        "token_page": _find_token_page(states.metadata, raw),
        "wallet": _describe_wallet(question, address),
        "domains": ask_or_say(lambda: _list_domains(question, address)),
        "balances": _draw_balance(question, address) if shown == "history" else None,
        "show": shown,
        "lists": {name: title for name, (title, _) in LISTS.items()},
        "listed": ask_or_say(lambda: LISTS[shown][1](question, address)),
    }
    return Shown("account.html", f"Account {question.names.label(raw)}", values)


def _find_token_page(metadata: Metadata, raw: str) -> tuple[str, str] | None:
    """Return the path prefix and link text of the account's token page; None if it has none."""
    known = metadata.get(raw)
    types = [info.type for info in known.token_info] if known else []
    return next((TOKEN_PAGES[name] for name in types if name in TOKEN_PAGES), None)


def name_path(question: Question, kind: str, raw: str) -> str:
    """Return the path of a page about the account ``raw``; ``kind`` is its first segment."""
    return f"/{kind}/{quote(question.names.friendly(raw))}"


def _describe_wallet(question: Question, address: Address) -> WalletState | None:
    found = get_wallet_states(question.call, WalletStatesQuery(address=(address,))).wallets
    return found[0] if found and found[0].is_wallet else None


def _list_domains(question: Question, address: Address) -> list[str]:
    found = get_records(question.call, RecordsQuery(wallet=address, limit=ROWS, offset=0))
    return [record.domain for record in found.records]


def _draw_balance(question: Question, address: Address) -> chart.Line | None:
    rows = question.call.reader.rows(
        "explorer/balances",
        workchain=address.workchain,
        account=address.account,
        limit=CHART_ROWS,
    )
    return chart.plot_steps([(row["utime"], row["balance"]) for row in reversed(rows)])


class History(msgspec.Struct, frozen=True):
    """One page of a tab, with links to older rows and back to the newest."""

    rows: list[Any]
    older: str
    newest: str
    ton_price: Price | None = None
    """The price of TON, if known; only for the tokens tab."""


def _list_transactions(question: Question, address: Address) -> History:
    offset = read_offset(question)
    keys = find_keys(
        question.call, TransactionsQuery(account=(address,), limit=ROWS, offset=offset)
    )
    found = ask_transactions(question, keys)
    return _page_by_offset(question, address, found.transactions, offset)


def _list_tokens(question: Question, address: Address) -> History:
    rows, ton_price = list_holdings(question, address)
    found = _page_by_offset(question, address, rows, read_offset(question))
    return msgspec.structs.replace(found, ton_price=ton_price)


def _list_messages(question: Question, address: Address) -> History:
    rows = list_messages(question, address)
    return _page_by_offset(question, address, rows, read_offset(question))


def _list_items(question: Question, address: Address) -> History:
    offset = read_offset(question)
    query = ItemsQuery(owner_address=(address,), limit=ROWS, offset=offset)
    found = question.ask(get_items, query)
    return _page_by_offset(question, address, found.nft_items, offset)


def _page_by_offset(question: Question, address: Address, rows: list[Any], offset: int) -> History:
    older = offset + ROWS if len(rows) == ROWS else None
    return _page(question, address, rows, offset=older, is_first=not offset)


def _page(
    question: Question, address: Address, rows: list[Any], *, is_first: bool, **older: object
) -> History:
    path = name_path(question, "account", str(address))
    kept = question.kept | ({"way": way} if (way := question.argument("way")) else {})
    more = any(value not in (None, "") for value in older.values())
    return History(
        rows,
        older=link(path, **kept, **older) if more else "",
        newest="" if is_first else link(path, **kept),
    )


LISTS: dict[str, tuple[str, Callable[[Question, Address], History | HistoryPage | Contract]]] = {
    "history": ("History", list_history),
    "transactions": ("Transactions", _list_transactions),
    "messages": ("Messages", _list_messages),
    "tokens": ("Tokens", _list_tokens),
    "nfts": ("NFTs", _list_items),
    "contract": ("Contract", show_contract),
}
"""The tabs of an account page: title and the function that returns the content."""
