"""Pictures draw what was requested, and nothing overlaps."""

from collections import Counter
from datetime import date, timedelta
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.explorer import account, block, transaction
from tonlake.api.explorer.block import WIDTH, draw_shards, measure_shard
from tonlake.api.explorer.words.names import Names
from tonlake.api.v3.layout.transaction import Message, Transaction, TransactionDescr


class Labels(Names):
    """Names without a lake."""

    def __init__(self) -> None:
        pass

    def label(self, raw: str) -> str:
        return raw

    def interfaces(self, raw: str) -> list[str]:  # noqa: ARG002 - as the real one
        return []


def _message(number: int) -> Message:
    empty: dict[str, Any] = dict.fromkeys(Message.__struct_fields__[:18])
    return Message(**(empty | {"hash": f"m{number}", "value": str(number), "opcode": "0x1"}))


def _transaction(number: int, children: list[int]) -> Transaction:
    empty: dict[str, Any] = dict.fromkeys(Transaction.__struct_fields__[:17])
    return Transaction(
        **empty
        | {
            "account": f"a{number}",
            "hash": f"t{number}",
            "description": TransactionDescr(type="ord", aborted=False),
            "in_msg": _message(number),
            "out_msgs": [_message(child) for child in children],
        }
    )


@st.composite
def traces(draw: st.DrawFn) -> list[Transaction]:
    """Transactions of a tree, parents first: each one's parent is any before it."""
    count = draw(st.integers(1, 30))
    parents = [draw(st.integers(0, at - 1)) for at in range(1, count)]
    children: list[list[int]] = [[] for _ in range(count)]
    for at, parent in enumerate(parents, 1):
        children[parent].append(at)
    return [_transaction(at, children[at]) for at in range(count)]


@given(traces())
def test_every_transaction_has_a_place_of_its_own(transactions: list[Transaction]) -> None:
    picture = transaction.draw_tree(transactions, Labels())
    places = {(box.x, box.y) for box in picture.boxes}
    assert len(places) == len(picture.boxes) == len(transactions)
    assert len(picture.edges) == len(transactions) - 1
    assert all(box.x + transaction.BOX_WIDTH <= picture.width for box in picture.boxes)
    assert all(box.y + transaction.BOX_HEIGHT <= picture.height for box in picture.boxes)
    columns = {each.hash: column for each, column, _row in transaction.place_tree(transactions)}
    for parent in transactions:
        for message in parent.out_msgs:
            assert columns[f"t{message.hash[1:]}"] == columns[parent.hash] + 1


def test_deep_and_large_traces_are_drawn() -> None:
    count = 3000
    chain = [_transaction(at, [at + 1]) for at in range(count)]
    assert len(transaction.place_tree(chain)) == count
    picture = transaction.draw_tree(chain, Labels())
    assert (len(picture.boxes), picture.hidden) == (
        transaction.MAX_BOXES,
        count - transaction.MAX_BOXES,
    )


def test_wide_fans_are_folded_but_for_what_failed() -> None:
    count = 365
    fan = [_transaction(0, list(range(1, count)))]
    fan += [_transaction(at, []) for at in range(1, count)]
    fan[300].description.aborted = True
    fan[200].in_msg.bounced = True  # type: ignore[union-attr] # all have one
    whole, folded = (
        transaction.draw_tree(fan, Labels()),
        transaction.draw_tree(fan, Labels(), fold=True),
    )
    assert (len(whole.boxes), whole.folded) == (count, 0)
    assert len(folded.boxes) + folded.folded == count
    assert len(folded.boxes) <= transaction.MAX_BRANCHES + 2
    kinds = {box.tx_hash: box.kind for box in folded.boxes}
    assert (kinds["t300"], kinds["t200"], kinds["t1"]) == ("bad", "returned", "plain")
    edges = Counter(edge.kind for edge in folded.edges)
    assert (edges["bad"], edges["bounced"]) == (1, 1)
    assert folded.boxes[0].folded == folded.folded


@given(traces())
def test_the_outline_has_every_transaction_once(transactions: list[Transaction]) -> None:
    outline = transaction.list_outline(transactions, Labels())
    assert len({one.transaction.hash for one in outline}) == len(transactions)
    assert outline[0].size == len(transactions) - 1
    assert sum(one.closes for one in outline) == sum(one.size > 0 for one in outline)


POINTS = st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**63)), max_size=40)


@given(POINTS)
def test_lines_stay_inside(points: list[tuple[int, int]]) -> None:
    points.sort()
    line = account.plot_steps(points)
    if len(points) < 2 or points[0][0] == points[-1][0]:
        assert line is None
        return
    assert line is not None
    assert (line.low, line.high) == (0, max(y for _, y in points))
    numbers = line.line.replace("M", " ").replace("H", " ").replace("V", " ").split()
    assert all(0 <= float(each) <= account.WIDTH for each in numbers)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 2**63), max_size=5))
def test_slices_fill_the_bar(numbers: dict[str, int]) -> None:
    slices = transaction.slice_bar(numbers)
    assert sum(each.number for each in slices) == sum(numbers.values())
    for before, after in pairwise(slices):
        assert abs(before.start + before.width - after.start) < 0.01
    if slices:
        assert abs(slices[-1].start + slices[-1].width - 100) < 0.01


@given(
    st.dictionaries(
        st.dates(date(2019, 11, 15), date(2030, 1, 1)), st.integers(1, 10**9), max_size=20
    )
)
def test_calendars_have_every_day(rows: dict[date, int]) -> None:
    calendar = block.fill_calendar(rows)
    if calendar is None:
        assert rows == {}
        return
    days = [each.day for each in calendar.days]
    assert days == [days[0] + timedelta(days=at) for at in range(len(days))]
    assert days[-1] == max(rows)
    assert calendar.earlier + sum(day in rows for day in days) == len(rows)
    for each in calendar.days:
        assert (each.shade == 0) == (each.rows == 0)
        assert each.shade <= block.SHADES
        assert each.y == each.day.weekday() * block.CELL
        assert each.x < calendar.width
    assert calendar.width <= block.MAX_WEEKS * block.CELL


def test_months_of_a_calendar_do_not_overlap_and_have_their_year() -> None:
    first = date(2024, 12, 20)
    calendar = block.fill_calendar({first: 1, date(2025, 12, 10): 1})
    assert calendar is not None
    names = [name for _, name in calendar.months]
    assert names[:2] == ["Dec 2024", "Feb 2025"]
    assert all(name[:3] == name for name in names[2:])
    assert all(b - a >= 3 * block.CELL for (a, _), (b, _) in pairwise(calendar.months))


WHOLE, LEFT, RIGHT = 1 << 63, 1 << 62, 3 << 62


def _block(shard: int, seqno: int, count: int = 1) -> Any:
    return SimpleNamespace(workchain=0, shard=f"{shard:016X}", seqno=seqno, tx_count=count)


def test_shards_are_measured() -> None:
    assert measure_shard(WHOLE) == (0, 1)
    assert measure_shard(LEFT) == (0, 0.5)
    assert measure_shard(RIGHT) == (0.5, 1)


def test_a_split_stands_below_its_parent() -> None:
    blocks = [_block(LEFT, 8), _block(RIGHT, 8, 5), _block(WHOLE, 7)]
    (found,) = draw_shards(blocks, [(0, LEFT, 8), (0, RIGHT, 8)])
    parent, left, right = found.boxes
    assert (parent.y, parent.width > left.width + 10) == (0, True)
    assert left.y == right.y > 0
    assert right.label == "8: 5"


def test_a_shard_without_a_new_block_is_shown() -> None:
    (found,) = draw_shards([], [(0, WHOLE, 6)])
    assert [(box.is_new, box.label) for box in found.boxes] == [(False, "")]
    assert "no new block" in found.boxes[0].title


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 63), st.integers(1, 50)), max_size=20))
def test_no_box_lies_upon_another(shards: list[tuple[int, int, int]]) -> None:
    blocks = [
        _block((2 * (at % (1 << bits)) + 1) << (63 - bits), seqno) for bits, at, seqno in shards
    ]
    for picture in draw_shards(cast("Any", blocks), []):
        for box in picture.boxes:
            assert box.x >= 0
            assert box.x + box.width <= WIDTH
            assert box.y < picture.height
        for one, two in combinations(picture.boxes, 2):
            apart = one.x + one.width <= two.x or two.x + two.width <= one.x
            assert one.y != two.y or apart
