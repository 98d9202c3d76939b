"""The generated lake of many files passes every check of a genuine one."""

from pathlib import Path

from tests.made.files import TABLES_MADE, ManyFiles
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake


def test_the_lake_has_the_files_and_commits_asked_for(tmp_path: Path) -> None:
    state = ManyFiles(files=30 * len(TABLES_MADE), commits=110).make(tmp_path)
    assert (len(state.files), state.number) == (30 * len(TABLES_MADE), 111)
    assert [segment.rows for segment in state.segments] == [80]
    report = verify_lake(tmp_path)
    assert (report.commits, report.damage, report.orphans) == (111, [], [])


def test_rows_of_a_place_are_those_of_its_blocks(tmp_path: Path) -> None:
    state = ManyFiles(files=3 * len(TABLES_MADE), commits=10).make(tmp_path)
    assert state.ranges == ((1, 7),)
    connection = connect(open_snapshot(tmp_path))
    for name in ("blocks", "transactions", "messages", "account_states", "wallets"):
        rows = connection.execute(
            "select count(*), max(mc_seqno) <= 7 from query_table($1)", [name]
        )
        assert rows.fetchall() == [(7, True)], name
