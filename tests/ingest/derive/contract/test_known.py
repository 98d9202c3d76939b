"""States of accounts in a lake: asked one by one they are those that are asked together."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.known import AccountState, KnownLake
from tonlake.ingest.derive.contract.stack import Address
from tonlake.ingest.settings import IngestSections
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = IngestSections()
NEWEST = """
select distinct on (workchain, account) workchain, account, mc_seqno, last_trans_lt
from account_states where mc_seqno < $before
order by workchain, account, mc_seqno desc, block_seqno desc
"""
NOBODY = Address(0, bytes(range(32)))


def find(lake_dir: Path, groups: Iterator[set[Address]], before: int) -> list[AccountState]:
    """Return what a lake that nobody has asked says of groups of accounts, asked in turn."""
    with closing(KnownLake(lake_dir, SETTINGS)) as lake:
        state = read_state(lake_dir)
        found = [lake.find_states(group, state, before) for group in groups]
    return sorted(each for states in found for each in states.values())


def test_one_account_is_answered_as_many_are(demo_lake: Path) -> None:
    last = read_state(demo_lake).ranges[-1][1]
    for before in (last // 2, last + 1):
        with connect(open_snapshot(demo_lake), SETTINGS.lake) as connection:
            rows = connection.execute(NEWEST, {"before": before}).fetchall()
        accounts = {Address(*row[:2]) for row in rows[:12]}
        assert len(accounts) == 12
        together = find(demo_lake, iter([accounts | {NOBODY}]), before)
        assert together == find(demo_lake, ({each} for each in {*accounts, NOBODY}), before)
        shown = [(each.workchain, each.account, each.mc_seqno, each.lt) for each in together]
        assert shown == sorted(rows[:12])
