"""Renders an account page: state, QR code, jettons with their value, NFTs and history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import segno

from tonlake.api.explorer import chart
from tonlake.api.explorer.contract.tab import show_contract
from tonlake.api.explorer.frame import (
    Listed,
    Question,
    Shown,
    ask_or_say,
    choose,
    list_page,
    read_address,
    read_offset,
)
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

    from tonlake.api.text.encoding import Address
    from tonlake.api.v3.resource.answer import Metadata, WalletState


QUIET = 4
"""Width of the quiet zone in modules (ISO/IEC 18004)."""

ROWS = 20
RECEIVED, SENT, EXTERNAL = WAYS = ("in", "out", "external")
"""Message filters: from other accounts, sent, from outside the chain."""


def draw_code(text: str) -> str:
    """Return the QR code of ``text`` as SVG, with error correction level M."""
    code = segno.make(text, error="m", micro=False)
    return code.svg_inline(border=QUIET, light="#fff", omitsize=True, svgclass=None, lineclass=None)


class Holdings(Listed, frozen=True, kw_only=True):
    """One page of an account's tokens, each with its wallet, and its value if a price is known."""

    ton_price: dict[str, Any] | None
    """The newest known price of TON: ``usd`` and ``utime``, the hour it belongs to."""


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
    shown = choose(question, "show", LISTS)
    values: Values = {
        "raw": raw,
        "friendly": question.names.friendly(raw),
        "way": choose(question, "way", WAYS),
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


def _list_transactions(question: Question, address: Address) -> Listed:
    query = TransactionsQuery(account=(address,), limit=ROWS, offset=read_offset(question))
    found = ask_transactions(question, find_keys(question.call, query))
    return _page(question, address, found.transactions)


def _list_tokens(question: Question, address: Address) -> Holdings:
    query = WalletsQuery(owner_address=(address,), limit=ROWS, offset=read_offset(question))
    wallets = question.ask(get_wallets, query).jetton_wallets
    prices = _read_prices(question, [wallet.jetton for wallet in wallets])
    rows = [
        {"wallet": wallet, **_value(question, wallet, prices.get(wallet.jetton))}
        for wallet in wallets
    ]
    page = msgspec.structs.asdict(_page(question, address, rows))
    return Holdings(**page, ton_price=prices.get(TON))


def _read_prices(question: Question, jettons: list[str]) -> dict[str, Values]:
    """Return the newest known prices by raw address of the jetton; of TON under ``TON``."""
    reader = question.call.reader
    if not reader.snapshot.files["dex_swaps"]:
        return {}
    return {row["address"]: row for row in reader.rows("explorer/prices", jettons=jettons)}


def _value(question: Question, wallet: JettonWallet, price: Values | None) -> Values:
    """Return the value of a balance in TON and USD, and the hour of the price."""
    if price is None:
        return {"ton": None, "usd": None}
    units = int(wallet.balance) / 10 ** question.names.digits(wallet.jetton)
    usd = None if price["usd"] is None else units * price["usd"]
    return {"ton": units * price["ton"], "usd": usd, "utime": price["utime"]}


def _list_messages(question: Question, address: Address) -> Listed:
    """Return one page of the messages that an account received or sent, newest first."""
    way = question.argument("way")
    query = MessagesQuery(
        source=address if way == SENT else None,
        destination=None if way == SENT else address,
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
    return _page(question, address, [build((row,)) for row in rows])


def _list_items(question: Question, address: Address) -> Listed:
    query = ItemsQuery(owner_address=(address,), limit=ROWS, offset=read_offset(question))
    return _page(question, address, question.ask(get_items, query).nft_items)


def _page(question: Question, address: Address, rows: list[Any]) -> Listed:
    kept = question.kept | ({"way": way} if (way := question.argument("way")) else {})
    return list_page(question, name_path(question, "account", str(address)), rows, ROWS, **kept)


LISTS: dict[str, tuple[str, Callable[[Question, Address], Listed]]] = {
    "history": ("History", list_history),
    "transactions": ("Transactions", _list_transactions),
    "messages": ("Messages", _list_messages),
    "tokens": ("Tokens", _list_tokens),
    "nfts": ("NFTs", _list_items),
    "contract": ("Contract", show_contract),
}
"""The tabs of an account page: title and the function that returns the content."""
