"""Renders the history of an account: actions by day, each with direction and signed amounts."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from itertools import groupby, product
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from litestar import Response

from tonlake.api.errors import RequestInvalid
from tonlake.api.explorer.frame import HEADERS, Listed, Question, link, read_address
from tonlake.api.explorer.words.form import read_moment, write_hex, write_iso
from tonlake.api.explorer.words.movement import (
    DIRECTIONS,
    MOVES,
    NFT,
    REPEATED_BY,
    TON,
    Movement,
    is_repeated,
    list_movements,
    name_direction,
    write_amount,
)
from tonlake.api.explorer.words.sentence import WrittenAction, write_actions
from tonlake.api.request.call import ConversionError, parse_any_address
from tonlake.api.request.table_format import mark_formula
from tonlake.api.v3.route.token import WalletsQuery, get_wallets
from tonlake.api.v3.route.trace import (
    ActionsQuery,
    Cursor,
    answer_actions,
    parse_cursor,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.api.explorer.words.names import Names
    from tonlake.api.text.encoding import Address
    from tonlake.api.v3.resource.action import Action

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


class Entry(msgspec.Struct, frozen=True):
    """One action of a history, as text and as movements of assets."""

    written: WrittenAction
    movements: list[Movement]
    """Without movements that another action of the same message shows."""

    direction: str


class HistoryPage(Listed, frozen=True, kw_only=True):
    """One page of a history, newest first: ``rows`` are entries, ``days`` groups them by day."""

    days: list[tuple[date, list[Entry]]]
    filters: Filters
    tokens: dict[str, str]
    """Names of the assets offered as filters."""

    sheet: str
    """Path of the same rows as CSV."""

    read: int
    """Actions read, if filters left fewer than a full page and there are more; else 0."""

    types: tuple[str, ...] = tuple(sorted(MOVES))
    directions: dict[str, str] = msgspec.field(default_factory=DIRECTIONS.copy)


def read_filters(question: Question) -> Filters:
    """Return the filters among the parameters of a page.

    Raises:
        RequestInvalid: a filter has an invalid value.
    """
    texts = {name: question.argument(name).strip() for name in Filters.__struct_fields__}
    if texts["direction"] not in ("", *DIRECTIONS):
        raise RequestInvalid(f"direction is one of {', '.join(DIRECTIONS)}")
    if texts["token"] not in ("", TON, NFT):
        try:
            texts["token"] = str(parse_any_address(texts["token"]))
        except ConversionError as error:
            raise RequestInvalid("token is TON, NFT or the address of a jetton") from error
    for name in ("first", "last"):
        _read_day(name, texts[name])
    return Filters(**texts)


def list_history(question: Question, address: Address) -> HistoryPage:
    """Return one page of an account's history.

    Raises:
        RequestInvalid: a filter or the cursor is invalid.
    """
    filters = read_filters(question)
    actions, cursor, read = _find(question, address, filters)
    written = write_actions([action for action, _ in actions], question.names)
    repeated = _find_repeated(question, address, filters, actions)
    rows = [
        Entry(text, [] if action.action_id in repeated else moved, name_direction(moved))
        for text, (action, moved) in zip(written, actions, strict=True)
    ]
    days = [
        (day, list(entries))
        for day, entries in groupby(rows, lambda row: read_moment(row.written.utime).date())
    ]
    account = f"/account/{quote(question.names.friendly(str(address)))}"
    kept = {**filters.chosen, **question.kept}
    start = question.argument("cursor")
    return HistoryPage(
        rows=rows,
        days=days,
        filters=filters,
        tokens=_list_tokens(question, address, filters),
        older=link(account, **kept, cursor=str(cursor)) if cursor else "",
        newest=link(account, **kept) if start else "",
        sheet=link(f"{account}/history.csv", **kept, cursor=start),
        read=read if cursor and len(rows) < ROWS else 0,
    )


def show_sheet(question: Question) -> Response[bytes]:
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


def _write_lines(row: Entry, names: Names) -> Iterator[tuple[str, ...]]:
    """Yield a line for each movement of an action; one without an amount if there is none."""
    text = "".join(
        names.friendly(part.text) if part.kind == "account" else part.text
        for part in row.written.parts
    )
    about = (write_iso(row.written.utime), row.written.type, row.direction)
    end = (mark_formula(text), "succeeded" if row.written.success else "failed")
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
        yield (*about, *amounts, *end, write_hex(row.written.trace_id))


def _find(
    question: Question, address: Address, filters: Filters
) -> tuple[list[tuple[Action, list[Movement]]], Cursor | None, int]:
    """Return the actions of a page, the cursor of the next page and the number of actions read."""
    found: list[tuple[Action, list[Movement]]] = []
    cursor = _read_cursor(question)
    is_filtered = bool(filters.direction or filters.token)
    limit, read = BATCH if is_filtered else ROWS, 0
    while read < MAX_READ:
        query = make_query(address, filters, cursor, limit)
        actions = _ask(question, query)
        for action in actions:
            read, cursor = read + 1, _mark(action, by_time=query.by_time)
            movements = list_movements(action, str(address))
            if _matches(filters, movements):
                found.append((action, movements))
            if len(found) == ROWS:
                return found, cursor, read
        if len(actions) < limit:
            return found, None, read
    return found, cursor, read


def _find_repeated(
    question: Question,
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


def _ask(question: Question, query: ActionsQuery) -> list[Action]:
    actions = question.ask(answer_actions, query).actions
    question.call.headers.pop("X-Tonlake-Cursor", "")
    return actions


def make_query(
    address: Address, filters: Filters, cursor: Cursor | None, limit: int
) -> ActionsQuery:
    """Return the query of the actions; direction and token are filtered from its result."""
    last = _read_day("last", filters.last)
    return ActionsQuery(
        account=address,
        action_type=(filters.type,) if filters.type else (),
        start_utime=_read_day("first", filters.first),
        end_utime=None if last is None else last + DAY_S - 1,
        limit=limit,
        offset=0,
        cursor=cursor,
    )


def _matches(filters: Filters, movements: list[Movement]) -> bool:
    if filters.direction and name_direction(movements) != filters.direction:
        return False
    return not filters.token or any(one.asset == filters.token for one in movements)


def _mark(action: Action, *, by_time: bool) -> Cursor:
    """Return the cursor that continues after ``action``."""
    trace_end, end = int(action.trace_end_lt), int(action.end_lt)
    if by_time:
        trace_end, end = action.trace_end_utime, action.end_utime
    ids = (bytes.fromhex(write_hex(text)) for text in (action.trace_id, action.action_id))
    return Cursor(trace_end, next(ids), end, next(ids))


def _read_cursor(question: Question) -> Cursor | None:
    text = question.argument("cursor")
    try:
        return parse_cursor(text, parts=2) if text else None
    except ConversionError as error:
        raise RequestInvalid("invalid cursor") from error


def _read_day(name: str, text: str) -> int | None:
    """Return the Unix time at which a UTC day begins; None for ""."""
    if not text:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise RequestInvalid(f"{name} is a day as YYYY-MM-DD") from error


def _list_tokens(question: Question, address: Address, filters: Filters) -> dict[str, str]:
    """Return the assets offered as filters: TON, NFTs and the jettons of the account."""
    query = WalletsQuery(owner_address=(address,), limit=MAX_TOKENS, offset=0)
    held = [wallet.jetton for wallet in question.ask(get_wallets, query).jetton_wallets]
    chosen = [filters.token] if filters.token not in ("", TON, NFT) else []
    jettons = dict.fromkeys(held + chosen)
    return {TON: TON, NFT: "NFTs"} | {raw: question.names.symbol(raw) for raw in jettons}
