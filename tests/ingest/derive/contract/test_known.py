"""States of accounts in a lake: looked up one by one they equal those looked up together."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.damage import flip_file
from tests.lake.chain import Chain, commit_chain
from tonlake.ingest.derive.contract.stack import AddrStd
from tonlake.ingest.derive.contract.world import KnownAccount, KnownLake
from tonlake.ingest.settings import IngestSections, IngestSettings
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import NewestStates
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state

SETTINGS = IngestSections()
ASKED_BY_SQL = IngestSections(ingest=IngestSettings(cached_rows=1))
"""Settings that cache so few rows that unindexed states are queried with SQL."""

NEWEST = """
select distinct on (workchain, account) workchain, account, mc_seqno, last_trans_lt
from account_states where mc_seqno < $before
order by workchain, account, mc_seqno desc, block_seqno desc
"""
UNKNOWN = AddrStd(0, bytes(range(32)))
ALL_NEWEST = """
select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from latest_account_states
"""


@pytest.fixture
def indexed(indexed: Path, tmp_path: Path) -> Path:
    """The lake of the demo node with an index, to be changed."""
    return shutil.copytree(indexed, tmp_path / "indexed")


@pytest.fixture
def half_indexed(tmp_path: Path) -> Path:
    """A lake with an index of its middle, and later and earlier states of the same accounts."""
    chain = Chain(5)
    commit_chain(tmp_path, chain, 1001, 1020)
    rebuild_index(tmp_path)
    commit_chain(tmp_path, chain, 2003, 2007)
    commit_chain(tmp_path, chain, 1, 9)
    return tmp_path


def read_newest(lake_dir: Path) -> dict[AddrStd, KnownAccount]:
    """Return the newest state of every account of a lake, with SQL."""
    with connect(open_snapshot(lake_dir), statement=ALL_NEWEST) as connection:
        states = map(KnownAccount._make, connection.execute(ALL_NEWEST).fetchall())
        return {state.address: state for state in states}


@pytest.mark.parametrize(("name", "loose"), [("indexed", 0), ("half_indexed", 2)])
def test_the_index_returns_the_same_states_as_sql(
    request: pytest.FixtureRequest, name: str, loose: int
) -> None:
    lake_dir: Path = request.getfixturevalue(name)
    state = read_state(lake_dir)
    covered = NewestStates(lake_dir).open(state)
    assert (len(covered), len(subtract_ranges(state.ranges, covered))) == (1, loose)
    expected = read_newest(lake_dir)
    for settings in (SETTINGS, ASKED_BY_SQL):
        with closing(KnownLake(lake_dir, settings)) as lake:
            before = state.ranges[-1][1] + 1
            assert lake.find_states({*expected, UNKNOWN}, state, before) == expected


def test_with_an_index_no_file_is_read_for_accounts_with_transactions(indexed: Path) -> None:
    newest = read_newest(indexed)
    shutil.rmtree(indexed / "account_states")
    state = read_state(indexed)
    found = {address: one for address, one in newest.items() if one.mc_seqno}
    assert len(found) > 50
    with closing(KnownLake(indexed, SETTINGS)) as lake:
        assert lake.find_states({*found, UNKNOWN}, state, state.ranges[-1][1] + 1) == found


def test_a_damaged_segment_is_not_asked(indexed: Path) -> None:
    (segment,) = (indexed / "lookups").glob("*.arrow")
    flip_file(segment)
    state, expected = read_state(indexed), read_newest(indexed)
    assert NewestStates(indexed).open(state) == []
    with closing(KnownLake(indexed, SETTINGS)) as lake:
        assert lake.find_states(set(expected), state, state.ranges[-1][1] + 1) == expected


def find(lake_dir: Path, groups: Iterator[set[AddrStd]], before: int) -> list[KnownAccount]:
    """Return the states of groups of accounts, looked up group by group in a fresh cache."""
    with closing(KnownLake(lake_dir, ASKED_BY_SQL)) as lake:
        state = read_state(lake_dir)
        found = [lake.find_states(group, state, before) for group in groups]
    return sorted(each for states in found for each in states.values())


def test_one_account_is_answered_as_many_are(demo_lake: Path) -> None:
    last = read_state(demo_lake).ranges[-1][1]
    for before in (last // 2, last + 1):
        with connect(open_snapshot(demo_lake), statement=NEWEST) as connection:
            rows = connection.execute(NEWEST, {"before": before}).fetchall()
        accounts = {AddrStd(*row[:2]) for row in rows[:12]}
        assert len(accounts) == 12
        together = find(demo_lake, iter([accounts | {UNKNOWN}]), before)
        assert together == find(demo_lake, ({each} for each in {*accounts, UNKNOWN}), before)
        shown = [(each.workchain, each.account, each.mc_seqno, each.lt) for each in together]
        assert shown == sorted(rows[:12])
