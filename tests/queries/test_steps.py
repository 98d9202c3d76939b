"""The index answers as SQL does whatever the order in which a lake grew."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.chain import Chain, commit_chain, commit_made
from tests.lake.opened import open_views
from tests.queries.test_door import show
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_index, open_segments
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.settings import LakeSettings
from tonlake.queries.reader import Reader

SETTINGS = LakeSettings()
PAGES = [(0, 5), (3, 1000)]
STEPS = st.lists(
    st.tuples(st.sampled_from(["commit", "commit", "hole", "fill", "rebuild", "rebuild all"]),
              st.integers(1, 4)),
    min_size=1,
    max_size=7,
)  # fmt: skip


@contextmanager
def temporary_lake() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder / "lake"
    finally:
        shutil.rmtree(folder)


def take_steps(lake: Path, seed: int, steps: list[tuple[str, int]]) -> None:
    """Create a lake; blocks in a hole are committed last, out of order."""
    chain = Chain(seed)
    at = 1
    commit_chain(lake, chain, at, at + 1)
    at += 2
    late = []
    for step, count in steps:
        if step == "commit":
            commit_chain(lake, chain, at, at + count - 1)
            at += count
        elif step == "hole":
            late.append((at, at + count - 1, chain.make(at, at + count - 1)))
            at += count
        elif step == "fill":
            if late:
                commit_made(lake, *late.pop(0))
        else:
            rebuild_index(lake, everything=step == "rebuild all")


@given(seed=st.integers(0, 10**6), steps=STEPS)
@settings(max_examples=5)
def test_all_answers_equal_those_of_sql(seed: int, steps: list[tuple[str, int]]) -> None:
    with temporary_lake() as lake:
        take_steps(lake, seed, steps)
        check_snapshot(open_snapshot(lake))


def check_snapshot(snapshot: Snapshot) -> None:
    """Compare answers of all kinds of questions that a chain without traces allows."""
    views = open_views(snapshot)
    plain = Reader(snapshot, views)
    indexed = Reader(snapshot, views, index=open_index(snapshot, SETTINGS))
    for name, asked in list_questions(plain):
        found, wanted = (reader.rows(name, **asked) for reader in (indexed, plain))
        # In the made-up chain a message may be consumed at the time at which it is sent.
        shown = (
            [
                [row["msg_hash"] for row in rows]
                if name == "v3/messages"
                else show(name, rows, wanted)
            ]
            for rows in (found, wanted)
        )
        assert next(shown) == next(shown), (name, asked)
    assert indexed.answered_by == {"index"}


def list_questions(plain: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    whole = plain.rows("v3/transaction_keys", limit=10_000)
    records: list[Any] = plain.rows("v3/transactions", keys=whole)
    rows = [each.row for each in records]
    yield "v3/transactions", {"keys": whole}
    yield "v3/transaction_keys_by_hash", {"hashes": [bytes(32), *(row["hash"] for row in rows)]}
    pages = [
        {"offset": offset, "limit": limit, "descending": descending}
        for offset, limit in PAGES
        for descending in (True, False)
    ]
    accounts = sorted({(row["workchain"], row["account"]) for row in rows} | {(7, bytes(32))})
    alike = [(at, each[:4] + bytes([at]) * 28) for _, each in accounts for at in range(24)]
    workchains, ids = map(list, zip(*accounts, *alike, strict=True))
    yield "v3/accounts", {"workchains": workchains, "accounts": ids}
    yield "v3/account_codes", {"workchains": workchains, "accounts": ids}
    lts = sorted(row["lt"] for row in rows) or [5]
    for page in pages:
        yield "v3/accounts_by_balance", {key: page[key] for key in ("offset", "limit")}
        for mc_seqno in {row["mc_seqno"] for row in rows[:3]} | {10**6}:
            yield "v3/transaction_keys", {"mc_seqno": mc_seqno, **page}
        yield "v3/transaction_keys", {**page, "start_lt": lts[0] + 1}
        yield "v3/transaction_keys", {"aborted": True, "by_time": True, **page}
        for workchain, account in accounts[:2]:
            asked = {"workchain": workchain, "account": account, **page}
            yield "v3/transaction_keys_of_account", asked
            yield "v3/transaction_keys_of_account", {**asked, "start_lt": lts[0] + 1}
        yield "v3/messages", {**page}
        yield "v3/messages", {"by_time": True, **page}


def test_pages_of_many_segments_join_without_gap_or_overlap(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(5, accounts=4)
    for at in range(1, 40):
        commit_chain(lake, chain, at, at)
        if at in (20, 30):
            rebuild_index(lake)
    lookups = open_segments(open_snapshot(lake), SETTINGS)
    assert lookups is not None
    assert len(lookups.segments) > 3
    check_snapshot(open_snapshot(lake))


def test_too_much_without_a_segment_is_left_to_the_queries(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_chain(lake, Chain(1), 1, 20)
    snapshot = open_snapshot(lake)
    few = LakeSettings(index_memory_rows=1)
    assert open_segments(snapshot, few) is None
    assert open_segments(snapshot, SETTINGS) is not None
    rebuild_index(lake)
    assert open_segments(open_snapshot(lake), few) is not None


def test_an_earlier_snapshot_shows_nothing_of_later_blocks(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(0)
    for at in range(1, 13, 3):
        commit_chain(lake, chain, at, at + 2)
        if at % 2:
            rebuild_index(lake, everything=at > 5)
    for number in range(1, open_snapshot(lake).number + 1):
        check_snapshot(open_snapshot(lake, number))
