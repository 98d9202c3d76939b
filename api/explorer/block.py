"""Renders the start page, the list of blocks, the block page with its shards, and the lake page."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import pairwise

import msgspec

from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.explorer.frame import (
    PageRequest,
    Shown,
    ask_or_say,
    convert,
    list_page,
    read_number,
    read_offset,
)
from tonlake.api.explorer.network import compare_configuration
from tonlake.api.explorer.transaction import ask_transactions, list_actions
from tonlake.api.request.call import parse_int32, parse_shard
from tonlake.api.v3.layout.transaction import Block
from tonlake.api.v3.page.transaction_page import TransactionsQuery, find_keys
from tonlake.api.v3.route.block import BlocksQuery, get_blocks
from tonlake.api.v3.route.trace import ActionsQuery
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.command.status import read_status
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import read_commit
from tonlake.queries.reader import Reader, Row

WIDTH, ROW, GAP = 100, 34, 0.3
"""Width of the diagram and gap between boxes in percent; height of a row in pixels."""

MIN_LABEL = 9
"""Minimum width of a box with a label; narrower boxes have only a title."""

ID_BITS = 64


class ShardBox(msgspec.Struct, frozen=True):
    """A block or shard without a new one; ``x`` and ``width`` are in percent, ``y`` in pixels."""

    x: float
    y: int
    width: float
    label: str
    title: str
    path: str
    is_new: bool


class Shards(msgspec.Struct, frozen=True):
    """The boxes of one workchain, newest at the bottom."""

    workchain: int
    boxes: list[ShardBox]
    height: int


def measure_shard(shard: int) -> tuple[float, float]:
    """Return start and end, 0 to 1, of an unsigned shard id among the ids of its workchain."""
    low = shard & -shard
    return (shard - low) / (1 << ID_BITS), (shard + low) / (1 << ID_BITS)


def draw_shards(committed: Sequence[Block], tops: Iterable[tuple[int, int, int]]) -> list[Shards]:
    """Return one diagram per workchain of the blocks that a masterchain block commits.

    ``tops`` are workchain, shard (unsigned) and seqno of the newest block of every shard.
    """
    blocks = {
        (block.workchain, int(block.shard, 16), block.seqno): block.tx_count for block in committed
    }
    known: dict[tuple[int, int, int], int | None] = dict.fromkeys(tops) | blocks
    found = []
    for workchain in sorted({key[0] for key in known}):
        keys = sorted((key for key in known if key[0] == workchain), key=lambda key: key[2])
        found.append(_draw_workchain(workchain, [(key, known[key]) for key in keys]))
    return found


def _draw_workchain(
    workchain: int, blocks: Sequence[tuple[tuple[int, int, int], int | None]]
) -> Shards:
    """Place ``blocks``, sorted by seqno, each below the blocks whose account ids it overlaps."""
    boxes: list[ShardBox] = []
    levels: list[tuple[float, float, int]] = []
    for (_, shard, seqno), transactions in blocks:
        start, end = measure_shard(shard)
        above = [level for left, right, level in levels if left < end and start < right]
        level = max(above, default=-1) + 1
        levels.append((start, end, level))
        is_new = transactions is not None
        count = f"{transactions:,} transactions" if is_new else "no new block"
        width = round((end - start) * WIDTH - GAP, 3)
        boxes.append(
            ShardBox(
                round(start * WIDTH, 3),
                level * ROW,
                max(width, 0.1),
                f"{seqno}: {transactions:,}" if is_new and width >= MIN_LABEL else "",
                f"{workchain}:{shard:016x}:{seqno}, {count}",
                f"/block/{workchain}:{shard:016x}:{seqno}",
                is_new,
            )
        )
    return Shards(workchain, boxes, (max(level for *_, level in levels) + 1) * ROW)


START_ROWS = 8
PAGE_ROWS = 25
BLOCK_ROWS = 50
MAX_COMMITTED = 1000
_ID = re.compile(r"(-?[0-9]{1,10}):([0-9a-fA-F]{16}):([0-9]{1,10})")


def show_start(question: PageRequest) -> Shown:
    """Show the search field, the newest blocks and the newest actions."""
    reader = question.call.reader
    blocks = read_latest(reader, START_ROWS)
    snapshot = reader.snapshot
    query = ActionsQuery(limit=START_ROWS, offset=0)
    values = {
        "blocks": blocks,
        "last": snapshot.last_mc_seqno,
        "lag": time.time() - blocks[0]["utime"] if blocks else 0,
        "newest_utime": blocks[0]["utime"] if blocks else None,
        "transactions": sum(file.rows for file in snapshot.files["transactions"]),
        "size": sum(file.bytes for each in snapshot.files.values() for file in each),
        "actions": ask_or_say(lambda: list_actions(question, query)),
    }
    return Shown("start.html", "Start", values)


def show_blocks(question: PageRequest) -> Shown:
    """List masterchain blocks, newest first."""
    before = read_number(question, "before") or None
    blocks = read_latest(question.call.reader, PAGE_ROWS, before)
    more = blocks and blocks[-1]["mc_seqno"] > question.call.reader.snapshot.ranges[0][0]
    values = {
        "blocks": blocks,
        "before": before,
        "limit": PAGE_ROWS,
        "older": f"/blocks?before={blocks[-1]['mc_seqno']}" if more else "",
    }
    return Shown("blocks.html", "Latest blocks", values)


def show_rows(question: PageRequest) -> Shown:
    """Render the newest masterchain blocks as table rows, polled by the script."""
    limit = min(read_number(question, "limit", PAGE_ROWS), PAGE_ROWS)
    return Shown("block_rows.html", "", {"blocks": read_latest(question.call.reader, limit)})


def read_latest(reader: Reader, limit: int, before: int | None = None) -> list[Row]:
    """Return the newest masterchain blocks in the lake, or the newest before seqno ``before``."""
    first = _find_first(reader.snapshot.ranges, limit, before)
    return reader.rows("explorer/latest_blocks", first=first, before=before, limit=limit)


def _find_first(ranges: Sequence[Range], limit: int, before: int | None) -> int:
    """Return the lowest mc_seqno to read so that ``limit`` blocks are found despite holes."""
    missing = limit
    for first, last in reversed(ranges):
        end = last if before is None else min(last, before - 1)
        if end - first + 1 >= missing:
            return end - missing + 1
        missing -= max(0, end - first + 1)
    return 0


def show_block(question: PageRequest) -> Shown:
    """Show a block: its header, the shard blocks it commits and its transactions."""
    match = _ID.fullmatch(question.parts["id"])
    if match is None:
        raise RequestInvalid("a block id is workchain:shard:seqno, with the shard as 16 hex digits")
    refusal = "workchain and seqno must be 32-bit integers"
    workchain = convert(match[1], parse_int32, refusal)
    shard, seqno = parse_shard(match[2]), convert(match[3], parse_int32, refusal)
    place: Row = {"workchain": workchain, "shard": shard, "seqno": seqno}
    blocks = get_blocks(question.call, BlocksQuery(**place, limit=1, offset=0)).blocks
    if not blocks:
        raise AnswerNotFound(f"block {question.parts['id']} not found in this lake")
    (block,) = blocks
    page: Row = {"limit": BLOCK_ROWS + 1, "offset": read_offset(question), "sort": "asc"}
    keys = find_keys(question.call, TransactionsQuery(**place, **page))
    name = f"{workchain}:{block.shard.lower()}:{seqno}"
    values = {
        "block": block,
        **(_show_masterchain(question, block) if workchain == MASTERCHAIN else _SHARD),
        "transactions": ask_transactions(question, keys[:BLOCK_ROWS]).transactions,
        "next_blocks": list_next(question, block),
        "listed": list_page(question, f"/block/{name}", keys, BLOCK_ROWS),
    }
    return Shown("block.html", f"Block {name}", values)


_SHARD: Row = {"committed": [], "shards": [], "changes": []}
"""Empty values for the parts that only masterchain blocks have."""


def _show_masterchain(question: PageRequest, block: Block) -> Row:
    """Return the shard blocks that the block commits and the configuration changes it makes."""
    reader, seqno = question.call.reader, block.seqno
    query = BlocksQuery(mc_seqno=seqno, limit=MAX_COMMITTED, offset=0)
    found = get_blocks(question.call, query).blocks
    committed = [each for each in found if each.workchain != MASTERCHAIN]
    committed.sort(key=lambda each: (each.workchain, each.shard, each.seqno))
    rows = reader.rows("v2/shards", mc_seqno=seqno)
    tops = [(row["workchain"], row["shard"] & (1 << 64) - 1, row["seqno"]) for row in rows]
    changes = None
    if block.key_block:
        changes = compare_configuration(reader, seqno, block.prev_key_block_seqno)
    return {"committed": committed, "shards": draw_shards(committed, tops), "changes": changes}


def list_next(question: PageRequest, block: Block) -> list[Block]:
    """Return the next block of the shard, or of both halves after a split, if in the lake."""
    shard = int(block.shard, 16)
    half = (shard & -shard) >> 1
    shards = [shard - half, shard + half] if block.before_split else [shard]
    found: list[Block] = []
    for each in shards:
        place: Row = {"workchain": block.workchain, "seqno": block.seqno + 1}
        query = BlocksQuery(**place, shard=parse_shard(f"{each:016x}"), limit=1, offset=0)
        answer = ask_or_say(partial(get_blocks, question.call, query))
        found += [] if isinstance(answer, str) else answer.blocks
    return found


_DAY = re.compile(r"/day=([0-9]{4}-[0-9]{2}-[0-9]{2})/")


def show_lake(question: PageRequest) -> Shown:
    """Show the ranges the lake covers, its tables by size and its lag."""
    snapshot = question.call.reader.snapshot
    status = read_status(snapshot, read_commit(snapshot.lake_dir, snapshot.number)[0])
    newest = [row["utime"] for row in read_latest(question.call.reader, 1)]
    rows: Counter[date] = Counter()
    for file in snapshot.files["transactions"]:
        if match := _DAY.search(file.path):
            rows[date.fromisoformat(match[1])] += file.rows
    values = {
        "status": status,
        "lag": time.time() - newest[0] if newest else None,
        "newest_utime": newest[0] if newest else None,
        "calendar": fill_calendar(rows),
        "tables": sorted(status.tables.items(), key=lambda pair: -pair[1].bytes),
        "empty": sorted(name for name, table in status.tables.items() if not table.rows),
        "damaged": {name: str(error) for name, error in snapshot.damaged.items()},
    }
    return Shown("lake.html", "The lake", values)


CELL = 14
"""Side of one day in the calendar, gap included."""

WEEK_DAYS = 7
MAX_WEEKS = 54
SHADES = 4


class CalendarDay(msgspec.Struct, frozen=True):
    """A day of the calendar; ``shade`` 0 means no rows."""

    day: date
    rows: int
    x: int
    y: int
    shade: int


class Calendar(msgspec.Struct, frozen=True):
    """Days in columns of weeks, Monday first, with month labels."""

    days: list[CalendarDay]
    months: list[tuple[int, str]]
    width: int
    earlier: int
    """Days with rows before the first day shown."""


def fill_calendar(rows_by_day: Mapping[date, int]) -> Calendar | None:
    """Return the days from the first to the last with rows, at most the last 54 weeks."""
    if not rows_by_day:
        return None
    last = max(rows_by_day)
    monday = last - timedelta(days=last.weekday())
    begin = max(min(rows_by_day), monday - timedelta(weeks=MAX_WEEKS - 1))
    origin = begin - timedelta(days=begin.weekday())
    most = max(rows_by_day.values())
    days = []
    for offset in range((last - origin).days + 1):
        day = origin + timedelta(days=offset)
        if day < begin:
            continue
        rows = rows_by_day.get(day, 0)
        shade = 0 if rows == 0 else min(SHADES, 1 + SHADES * rows // (most + 1))
        x, y = divmod(offset, WEEK_DAYS)
        days.append(CalendarDay(day, rows, x * CELL, y * CELL, shade))
    weeks = days[-1].x // CELL + 1
    earlier = sum(1 for day in rows_by_day if day < begin)
    return Calendar(days, _name_months(days), weeks * CELL, earlier)


def _name_months(days: Sequence[CalendarDay]) -> list[tuple[int, str]]:
    """Return the x position and name of each month; the first of a year includes the year."""
    year = days[0].day.year
    found = [(days[0].x, f"{days[0].day:%b %Y}")]
    for before, after in pairwise(days):
        room = (5 if " " in found[-1][1] else 3) * CELL
        if after.day.month != before.day.month and after.x - found[-1][0] >= room:
            found.append(
                (after.x, f"{after.day:%b %Y}" if after.day.year > year else f"{after.day:%b}")
            )
            year = after.day.year
    return found
