"""Pages of messages: the index gives the same as SQL, for any combination of filters."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.ingest.whole import ingest_node
from tests.lake.chain import Chain, commit_made
from tests.lake.opened import open_views
from tests.queries.asking import ask_both
from tonlake.api.settings import Settings
from tonlake.lake.duck.connection import connect
from tonlake.lake.index import page
from tonlake.lake.index.answer import messages as answers
from tonlake.lake.index.index import open_index
from tonlake.lake.index.segment.segment import SegmentMessages
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings
from tonlake.queries.reader import Reader

DRAWS = 120
"""Pages in all; `test_combinations` draws thousands over a larger network."""
COLUMNS = ("msg_hash", "in_tx_hash", "out_tx_hash", "tx_hash", "tx_lt", "created_lt", "opcode")

OF_TRANSACTION = {"tx_workchain", "tx_account", "tx_lt", "tx_hash", "mc_seqno", "now", "time"}
"""Columns of a message's row that follow from its transaction."""

Message = tuple[Any, ...]
"""Source and destination with workchains, opcode, hash of the body, hash, creation."""


def draw(rng: Random, messages: list[Message]) -> dict[str, Any]:
    """Return filters that a message satisfies, or nearly, an order and a page."""
    found: dict[str, Any] = {
        "msg_hashes": [],
        "by_time": rng.random() < 0.4,
        "descending": rng.random() < 0.5,
        "limit": rng.choice((1, 3, 10, 100, 1000)),
        "offset": rng.choice((0, 0, 2, 30, 300)),
    }
    like = rng.choice(messages)
    for end, at in (("source", 0), ("destination", 2)):
        if rng.random() < 0.5 and like[at + 1] is not None:
            found |= {f"{end}_workchain": like[at], end: like[at + 1]}
        elif rng.random() < 0.05:
            found[f"no_{end}"] = True
    for name, at, often in (("opcode", 4, 0.3), ("body_hash", 5, 0.15)):
        if rng.random() < often:
            found[name] = (like if rng.random() < 0.8 else rng.choice(messages))[at]
    if rng.random() < 0.1:
        found["msg_hashes"] = [like[6], rng.choice(messages)[6]]
    if rng.random() < 0.2:
        found["direction"] = rng.choice(("in", "out"))
    if rng.random() < 0.2:
        found[rng.choice(("exclude_externals", "only_externals"))] = True
    unit, at = ("utime", 7) if found["by_time"] else ("lt", 8)
    moments = [rng.choice((like, like, rng.choice(messages)))[at] for _ in range(2)]
    return found | draw_span(rng, unit, moments)


def draw_ends(rng: Random, messages: list[Message]) -> dict[str, Any]:
    """Return the same for the transactions at the ends of messages with an opcode or a body."""
    like, names = rng.choice(messages), ("opcode", "body_hash")
    kept = {"msg_hashes", "descending", "limit", "offset", "direction"}
    kept.update(f"{end}{part}" for end in ("source", "destination") for part in ("", "_workchain"))
    found = {name: value for name, value in draw(rng, messages).items() if name in kept}
    return found | {
        name: like[4 + names.index(name)] for name in rng.sample(names, rng.choice((1, 1, 2)))
    }


def draw_span(rng: Random, unit: str, moments: list[int | None]) -> dict[str, int]:
    return {
        f"{end}_{unit}": moment + rng.choice((0, 0, step, 10 * step))
        for end, step, moment in zip(("start", "end"), (-1, 1), moments, strict=True)
        if rng.random() < 0.3 and moment is not None
    }


def list_messages(lake_dir: Path) -> tuple[Reader, Reader, list[Message]]:
    """Return a lake with and without its index, and its messages."""
    snapshot = open_snapshot(lake_dir)
    connection = connect(snapshot)
    messages = connection.execute(
        "select source_workchain, source, destination_workchain, destination, opcode, body_hash, "
        "msg_hash, created_at, created_lt from messages"
    ).fetchall()
    views = open_views(snapshot)
    indexed = Reader(snapshot, views, index=open_index(snapshot, LakeSettings()))
    return indexed, Reader(snapshot, views), messages


def compare(lake_dir: Path, rng: Random, draws: int, name: str = "v3/messages") -> list[float]:
    """Compare pages through the reader with those from SQL, and return the CPU ms of each."""
    indexed, plain, messages = list_messages(lake_dir)
    columns, make = (COLUMNS, draw) if name == "v3/messages" else (("hash", "lt"), draw_ends)
    answers = [ask_both(indexed, plain, name, make(rng, messages), columns) for _ in range(draws)]
    assert sum(each.by_index for each in answers) > draws * 2 / 3
    assert sum(each.filled for each in answers) > draws / (3 if name == "v3/messages" else 4)
    return [each.cpu_ms for each in answers]


def test_pages_of_messages(demo_lake: Path) -> None:
    compare(demo_lake, Random(22), DRAWS)  # noqa: S311 - a repeatable test


def test_messages_before_a_page_are_not_read(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed, plain, messages = list_messages(demo_lake)
    counts, read = list[int](), SegmentMessages.read

    def count(self: SegmentMessages, numbers: Sequence[int], *others: Any) -> list[Any]:
        counts.append(len(numbers))
        return read(self, numbers, *others)

    monkeypatch.setattr(SegmentMessages, "read", count)
    (workchain, busiest), most = Counter(row[2:4] for row in messages).most_common(1)[0]
    to_one: dict[str, Any] = {"destination_workchain": workchain, "destination": busiest}
    kinds = [to_one, {}, {"exclude_externals": True}, {"opcode": 0}, {"direction": "in"}]
    for filters in ({"by_time": by_time, **each} for each in kinds for by_time in (False, True)):
        counts.clear()
        asked = {"limit": 10, "offset": most // 3, **filters}
        assert ask_both(indexed, plain, "v3/messages", asked, COLUMNS).by_index
        assert 0 < sum(counts) <= 20


def test_pages_of_transactions_of_messages(demo_lake: Path) -> None:
    rng = Random(24)  # noqa: S311 - a repeatable test
    compare(demo_lake, rng, DRAWS // 2, "v3/transaction_keys_by_message")


def test_pages_of_several_segments(
    demo_node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_MIN_READ", 1)  # so that a few are many
    monkeypatch.setattr(page, "MAX_SORTED", 2)
    for ends in ((20, 59), (60, 149), (150, 200)):
        ingest_node(demo_node, tmp_path, Settings(), *ends)
    index = open_index(open_snapshot(tmp_path), LakeSettings())
    assert index is not None
    assert len(index.segments.segments) == 3
    rng = Random(23)  # noqa: S311 - a repeatable test
    compare(tmp_path, rng, DRAWS)
    compare(tmp_path, rng, DRAWS // 2, "v3/transaction_keys_by_message")


def test_pages_where_messages_from_outside_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_MIN_READ", 1)  # so that a few are many
    made = Chain(31, accounts=3).make(1, 100)
    rng = Random(25)  # noqa: S311 - a repeatable test
    rows = [row for row in made["messages"].to_pylist() if row["kind"] == "ext_in"]
    earlier: dict[tuple[int, bytes], list[dict[str, Any]]] = {}
    for row in rows:
        account = row["tx_workchain"], row["tx_account"]
        row |= {"source_workchain": None, "source": None}
        row |= {"destination_workchain": account[0], "destination": account[1]}
        known = earlier.setdefault(account, [row])
        like = rng.choice(known) if rng.random() < 0.5 else row
        row |= {name: like[name] for name in row.keys() - OF_TRANSACTION}
        known.append(row)
    made["messages"] = pa.Table.from_pylist(rows, schema=made["messages"].schema)
    commit_made(tmp_path, 1, 100, made)
    compare(tmp_path, rng, DRAWS // 4, "v3/transaction_keys_by_message")
    ((again, times),) = Counter(row["msg_hash"] for row in rows).most_common(1)
    indexed, plain, _messages = list_messages(tmp_path)
    monkeypatch.setattr(answers, "_list_ends", counted := mock.Mock(wraps=answers._list_ends))
    for way in (None, "out"):  # none was sent
        asked = {"msg_hashes": [again], "limit": 9, "direction": way}
        assert ask_both(indexed, plain, "v3/messages", asked, COLUMNS)
    assert counted.call_count == 2 < times
