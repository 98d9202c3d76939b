"""Both ends of a long history give the same states as all of its rows."""

from pathlib import Path

from tests.lake.holdings import commit_holdings
from tonlake.lake.index.answer.contracts import _read_ends, _read_states, address_of
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings


def test_ends_give_the_states_of_all_rows(tmp_path: Path) -> None:
    commit_holdings(tmp_path, 1, 3)
    rebuild_index(tmp_path)
    commit_holdings(tmp_path, 4, 6)
    segments = open_segments(open_snapshot(tmp_path), LakeSettings())
    assert segments is not None
    for name in ("jetton_wallets", "nft_items", "nft_sales"):
        tables = segments.tables(name)
        rows = [row for table in tables for row in table.read(range(table.count))]
        accounts = sorted({address_of("account")(row) for row in rows})
        assert len(accounts) < len(rows)
        for mc_seqno in (None, *range(7)):
            found = _read_states(_read_ends(tables, accounts, mc_seqno), mc_seqno)
            expected = _read_states(rows, mc_seqno)
            assert sorted(found, key=repr) == sorted(expected, key=repr)
