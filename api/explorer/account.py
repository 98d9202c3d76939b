"""Renders an account page: state, QR code, jettons with their value, NFTs and history."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby, product
from typing import Any

import msgspec
import segno
from litestar import Response

from tonlake.api.errors import RequestInvalid
from tonlake.api.explorer.contract import show_contract
from tonlake.api.explorer.frame import (
    HEADERS,
    ListPage,
    PageRequest,
    Shown,
    ask_or_say,
    choose,
    convert,
    link,
    list_page,
    name_path,
    read_address,
    read_offset,
)
from tonlake.api.explorer.transaction import ask_transactions
from tonlake.api.explorer.words.form import read_moment, write_hex, write_iso
from tonlake.api.explorer.words.names import Names, list_certain
from tonlake.api.explorer.words.sentence import (
    DIRECTIONS,
    MOVES,
    NFT,
    REPEATED_BY,
    TON,
    Movement,
    WrittenAction,
    is_repeated,
    join_parts,
    list_movements,
    name_direction,
    write_actions,
    write_amount,
)
from tonlake.api.request.call import parse_any_address
from tonlake.api.request.table_format import mark_formula
from tonlake.api.text.encoding import Address
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.transaction import Message
from tonlake.api.v3.page.listed import describe
from tonlake.api.v3.page.transaction_page import TransactionsQuery, find_keys
from tonlake.api.v3.resource.action import Action
from tonlake.api.v3.route.account import (
    AccountStatesQuery,
    WalletStatesQuery,
    get_account_states,
    get_wallet_states,
)
from tonlake.api.v3.route.block import MessagesQuery, find_rows, list_ends
from tonlake.api.v3.route.contract import RecordsQuery, get_records
from tonlake.api.v3.route.token import ItemsQuery, WalletsQuery, get_items, get_wallets
from tonlake.api.v3.route.trace import ActionsQuery, TraceCursor, get_actions, parse_cursor

ROWS = 20
BATCH, MAX_READ = 100, 1000
"""Batch size and maximum of actions read for one page filtered by direction or token."""

MAX_TOKENS = 50
DAY_S = 86_400
_CSV_COLUMNS = (
    *("time", "type", "direction", "amount", "asset", "asset_address", "other"),
    *("text", "result", "trace"),
)


class Filters(msgspec.Struct, frozen=True):
    """Filters of a history, as in the form."""

    type: str = ""
    direction: str = ""
    token: str = ""
    """TON, NFT, or the raw address of a jetton; "" for all."""

    first: str = ""
    last: str = ""
    """Days as YYYY-MM-DD; "" for no bound."""

    @property
    def chosen(self) -> dict[str, str]:
        """The active filters, as page parameters."""
        return {name: text for name, text in msgspec.structs.asdict(self).items() if text}


class HistoryEntry(msgspec.Struct, frozen=True):
    """One action of a history, as text and as movements of assets."""

    written: WrittenAction
    movements: list[Movement]
    """Without movements that another action of the same message shows."""

    direction: str


class HistoryPage(ListPage, frozen=True, kw_only=True):
    """One page of a history, newest first: ``rows`` are entries, ``days`` groups them by day."""

    days: list[tuple[date, list[HistoryEntry]]]
    filters: Filters
    tokens: dict[str, str]
    """Names of the assets offered as filters."""

    sheet: str
    """Path of the same rows as CSV."""

    read: int
    """Actions read, if filters left fewer than a full page and there are more; else 0."""

    types: tuple[str, ...] = tuple(sorted(MOVES))
    directions: dict[str, str] = msgspec.field(default_factory=DIRECTIONS.copy)


def read_filters(question: PageRequest) -> Filters:
    """Return the filters among the parameters of a page; RequestInvalid if one is invalid."""
    texts = {name: question.argument(name).strip() for name in Filters.__struct_fields__}
    if texts["direction"] not in ("", *DIRECTIONS):
        raise RequestInvalid(f"direction is one of {', '.join(DIRECTIONS)}")
    if texts["token"] not in ("", TON, NFT):
        refusal = "token is TON, NFT or the address of a jetton"
        texts["token"] = str(convert(texts["token"], parse_any_address, refusal))
    for name in ("first", "last"):
        _read_day(name, texts[name])
    return Filters(**texts)


def list_history(question: PageRequest, address: Address) -> HistoryPage:
    """Return one page of an account's history; RequestInvalid for a bad filter or cursor."""
    filters = read_filters(question)
    actions, cursor, read = _find(question, address, filters)
    written = write_actions([action for action, _ in actions], question.names)
    repeated = _find_repeated(question, address, filters, actions)
    rows = [
        HistoryEntry(text, [] if action.action_id in repeated else moved, name_direction(moved))
        for text, (action, moved) in zip(written, actions, strict=True)
    ]
    days = [
        (day, list(entries))
        for day, entries in groupby(
            rows, lambda row: read_moment(row.written.action.end_utime).date()
        )
    ]
    account = name_path(question, "account", str(address))
    kept = {**filters.chosen, **question.kept}
    start = question.argument("cursor")
    query = WalletsQuery(owner_address=(address,), limit=MAX_TOKENS, offset=0)
    held = [wallet.jetton for wallet in question.ask(get_wallets, query).jetton_wallets]
    chosen = [filters.token] if filters.token not in ("", TON, NFT) else []
    jettons = dict.fromkeys(held + chosen)
    return HistoryPage(
        rows=rows,
        days=days,
        filters=filters,
        tokens={TON: TON, NFT: "NFTs"} | {raw: question.names.symbol(raw) for raw in jettons},
        older=link(account, **kept, cursor=str(cursor)) if cursor else "",
        newest=link(account, **kept) if start else "",
        sheet=link(f"{account}/history.csv", **kept, cursor=start),
        read=read if cursor and len(rows) < ROWS else 0,
    )


def show_sheet(question: PageRequest) -> Response[bytes]:
    """Return the rows of a history page as CSV, one line per movement."""
    address = read_address(question)
    page = list_history(question, address)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for row in page.rows:
        writer.writerows(_write_lines(row, question.names))
    name = f"history-{address.account.hex()[:8]}.csv"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(stream.getvalue().encode(), media_type="text/csv", headers=headers)


def _write_lines(row: HistoryEntry, names: Names) -> Iterator[tuple[str, ...]]:
    """Yield a line for each movement of an action; one without an amount if there is none."""
    text = join_parts(row.written.parts, names.friendly)
    about = (write_iso(row.written.action.end_utime), row.written.action.type, row.direction)
    end = (mark_formula(text), "succeeded" if row.written.action.success else "failed")
    movements: list[Movement | None] = [*row.movements]
    for movement in movements or [None]:
        amount = asset = ""
        accounts: tuple[str, ...] = ("", "")
        if movement is not None:
            amount, asset = write_amount(movement, names)
            contract = movement.item or (movement.asset if movement.asset != TON else None)
            accounts = tuple(
                names.friendly(raw) if raw else "" for raw in (contract, movement.other)
            )
        amounts = (amount.replace(",", ""), mark_formula(asset), *accounts)
        yield (*about, *amounts, *end, write_hex(row.written.action.trace_id))


def _find(
    question: PageRequest, address: Address, filters: Filters
) -> tuple[list[tuple[Action, list[Movement]]], TraceCursor | None, int]:
    """Return the actions of a page, the cursor of the next page and the number of actions read."""
    found: list[tuple[Action, list[Movement]]] = []
    start, convert_start = question.argument("cursor"), partial(parse_cursor, parts=2)
    cursor = convert(start, convert_start, "invalid cursor") if start else None
    is_filtered = bool(filters.direction or filters.token)
    limit, read = BATCH if is_filtered else ROWS + 1, 0
    last = _read_day("last", filters.last)
    while read < MAX_READ:
        query = ActionsQuery(
            account=address,
            action_type=(filters.type,) if filters.type else (),
            start_utime=_read_day("first", filters.first),
            end_utime=None if last is None else last + DAY_S - 1,
            limit=limit,
            offset=0,
            cursor=cursor,
        )
        actions = _ask(question, query)
        for action in actions:
            moved = list_movements(action, str(address))
            directed = not filters.direction or name_direction(moved) == filters.direction
            if directed and (not filters.token or filters.token in {one.asset for one in moved}):
                if len(found) == ROWS:
                    return found, cursor, read
                found.append((action, moved))
            read, cursor = read + 1, _mark(action, by_time=query.by_time)
        if len(actions) < limit:
            return found, None, read
    return found, cursor, read


def _find_repeated(
    question: PageRequest,
    address: Address,
    filters: Filters,
    actions: list[tuple[Action, list[Movement]]],
) -> set[str]:
    """Return the ids of actions whose amount another action of the history shows, too.

    The other one may be on another page, so whole traces are read. Histories filtered by type do
    not contain it.
    """
    able = [action for action, moved in actions if moved and action.type in REPEATED_BY]
    if not able or filters.type:
        return set()
    traces = dict.fromkeys(action.trace_id for action in able)
    query = ActionsQuery(
        account=address,
        trace_id=tuple(bytes.fromhex(write_hex(text)) for text in traces),
        action_type=tuple({name for names in REPEATED_BY.values() for name in names}),
        limit=question.call.settings.http.max_limit,
        offset=0,
    )
    pairs = product(able, _ask(question, query))
    return {one.action_id for one, other in pairs if is_repeated(one, other, str(address))}


def _ask(question: PageRequest, query: ActionsQuery) -> list[Action]:
    return question.ask(get_actions, query).actions


def _mark(action: Action, *, by_time: bool) -> TraceCursor:
    """Return the cursor that continues after ``action``."""
    trace_end, end = int(action.trace_end_lt), int(action.end_lt)
    if by_time:
        trace_end, end = action.trace_end_utime, action.end_utime
    ids = (bytes.fromhex(write_hex(text)) for text in (action.trace_id, action.action_id))
    return TraceCursor(trace_end, next(ids), end, next(ids))


def _read_day(name: str, text: str) -> int | None:
    """Return the Unix time at which a UTC day begins; None for ""."""
    if not text:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise RequestInvalid(f"{name} is a day as YYYY-MM-DD") from error


QUIET = 4
"""Width of the quiet zone in modules (ISO/IEC 18004)."""

RECEIVED, SENT, EXTERNAL = WAYS = ("in", "out", "external")
"""Message filters: from other accounts, sent, from outside the chain."""


def draw_code(text: str) -> str:
    """Return the QR code of ``text`` as SVG, with error correction level M."""
    code = segno.make(text, error="m", micro=False)
    return code.svg_inline(border=QUIET, light="#fff", omitsize=True, svgclass=None, lineclass=None)


class Holdings(ListPage, frozen=True, kw_only=True):
    """One page of an account's jetton wallets."""

    prices: dict[str, Any]
    """The newest known prices, of jettons by master and of TON: ``ton``, ``usd`` and ``utime``."""


Values = dict[str, Any]

TOKEN_PAGES = {
    "jetton_masters": ("jetton", "Jetton page"),
    "nft_items": ("nft", "NFT page"),
    "nft_collections": ("nft", "Collection page"),
}
"""Path prefixes and link texts of the pages of tokens."""

CHART_ROWS = 500
"""Maximum points of the balance chart; longer histories show the newest ones."""


def show_account(question: PageRequest) -> Shown:
    """Show an account: its state, its balance over time and the selected tab."""
    address = read_address(question)
    query = AccountStatesQuery(address=(address,), include_boc=False)
    states = question.ask(get_account_states, query)
    state = next(iter(states.accounts), None)
    wallets = get_wallet_states(question.call, WalletStatesQuery(address=(address,))).wallets
    known = states.metadata.get(str(address))
    types = [info.type for info in known.token_info] if known else []
    pointing = RecordsQuery(wallet=address, limit=ROWS, offset=0)
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
        "token_page": next((TOKEN_PAGES[name] for name in types if name in TOKEN_PAGES), None),
        "wallet": next((one for one in wallets if one.is_wallet), None),
        "domains": ask_or_say(lambda: get_records(question.call, pointing).records),
        "balances": _draw_balance(question, address) if shown == "history" else None,
        "show": shown,
        "lists": {name: title for name, (title, _) in LISTS.items()},
        "listed": ask_or_say(lambda: LISTS[shown][1](question, address)),
    }
    return Shown("account.html", f"Account {question.names.label(raw)}", values)


def _draw_balance(question: PageRequest, address: Address) -> "Steps | None":
    rows = question.call.reader.rows(
        "explorer/balances", workchain=address.workchain, account=address.account, limit=CHART_ROWS
    )
    return plot_steps([(row["utime"], row["balance"]) for row in reversed(rows)])


WIDTH, HEIGHT, EDGE = 720, 180, 2
"""Size of a step chart in SVG units, and the margin above and below the line."""


class Steps(msgspec.Struct, frozen=True):
    """A step chart: SVG paths of the line and the area, and the limits of both axes."""

    line: str
    area: str
    low: int
    high: int
    first_utime: int
    last_utime: int


def plot_steps(points: Sequence[tuple[int, int]]) -> Steps | None:
    """Return the step line through (Unix seconds, amount), oldest first.

    The axis includes zero, so that heights are proportional to amounts. None if there are
    fewer than two points or all have the same time.
    """
    if len(points) < 2 or points[0][0] == points[-1][0]:  # noqa: PLR2004
        return None
    amounts = [amount for _utime, amount in points]
    low, high = min(0, *amounts), max(amounts)
    first, last = points[0][0], points[-1][0]

    def place(utime: int, amount: int) -> tuple[float, float]:
        share = (amount - low) / (high - low) if high > low else 0.5
        x = WIDTH * (utime - first) / (last - first)
        return round(x, 1), round(EDGE + (HEIGHT - 2 * EDGE) * (1 - share), 1)

    placed = [place(*point) for point in points]
    steps = [f"M{placed[0][0]} {placed[0][1]}"]
    steps += [f"H{x}V{y}" for x, y in placed[1:]]
    line = "".join(steps)
    return Steps(line, f"{line}V{HEIGHT}H0Z", low, high, first, last)


def _list_transactions(question: PageRequest, address: Address) -> ListPage:
    query = TransactionsQuery(account=(address,), limit=ROWS + 1, offset=read_offset(question))
    found = ask_transactions(question, find_keys(question.call, query))
    return _page(question, address, found.transactions)


def _list_tokens(question: PageRequest, address: Address) -> Holdings:
    query = WalletsQuery(owner_address=(address,), limit=ROWS + 1, offset=read_offset(question))
    wallets = question.ask(get_wallets, query).jetton_wallets
    prices: dict[str, Values] = {}
    if question.call.reader.snapshot.files["dex_swaps"]:
        jettons = [wallet.jetton for wallet in wallets]
        found = question.call.reader.rows("explorer/prices", jettons=jettons)
        prices = {row["address"]: row for row in found}  # of TON under ``TON``
    page = msgspec.structs.asdict(_page(question, address, wallets))
    return Holdings(**page, prices=prices)


def _list_messages(question: PageRequest, address: Address) -> ListPage:
    """Return one page of the messages that an account received or sent, newest first."""
    way = question.argument("way")
    query = MessagesQuery(
        source=address if way == SENT else None,
        destination=None if way == SENT else address,
        limit=ROWS + 1,
        offset=read_offset(question),
        sort="desc",
        exclude_externals=way not in (SENT, EXTERNAL),
        only_externals=way == EXTERNAL,
    )
    rows: list[Any] = find_rows(question.call, query)
    question.names.learn(**describe(question.call, list_ends(rows)))
    build = make_builder(Message, question.call.settings.http.opcode_format)
    return _page(question, address, [build((row,)) for row in rows])


def _list_items(question: PageRequest, address: Address) -> ListPage:
    query = ItemsQuery(owner_address=(address,), limit=ROWS + 1, offset=read_offset(question))
    return _page(question, address, question.ask(get_items, query).nft_items)


def _page(question: PageRequest, address: Address, rows: list[Any]) -> ListPage:
    kept = question.kept | ({"way": way} if (way := question.argument("way")) else {})
    return list_page(question, name_path(question, "account", str(address)), rows, ROWS, **kept)


LISTS: dict[str, tuple[str, Callable[[PageRequest, Address], ListPage]]] = {
    "history": ("History", list_history),
    "transactions": ("Transactions", _list_transactions),
    "messages": ("Messages", _list_messages),
    "tokens": ("Tokens", _list_tokens),
    "nfts": ("NFTs", _list_items),
    "contract": ("Contract", show_contract),
}
"""The tabs of an account page: title and the function that returns the content."""
