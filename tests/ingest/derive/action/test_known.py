"""Facts of accounts as of a block: the newest row until then, of the lake or of a new range."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.whole import read_table
from tonlake.ingest.derive.action.interface import show_address
from tonlake.ingest.derive.action.stored import KnownContracts
from tonlake.lake.log.state import LogState, read_state
from tonlake.lake.schema import JETTON_WALLETS, NFT_ITEMS
from tonlake.lake.settings import LakeSettings

Row = dict[str, Any]


def address_of(row: Row) -> str:
    return show_address(row["workchain"], row["account"]) or ""


@pytest.mark.parametrize("name", [JETTON_WALLETS.name, NFT_ITEMS.name])
def test_the_newest_row_until_a_block_counts(demo_lake: Path, name: str) -> None:
    known = KnownContracts(demo_lake, LakeSettings(), read_state(demo_lake))
    rows = read_table(demo_lake, name)
    asked = {(address_of(row), row["mc_seqno"] + more) for row in rows for more in (-1, 0, 1)}
    found = known.find(asked)
    owner = {JETTON_WALLETS.name: ("JettonWallet", "owner")}.get(name, ("NftItem", "owner_address"))
    interface, field = owner
    assert rows
    for address, mc_seqno in asked:
        mine = [row for row in rows if address_of(row) == address and row["mc_seqno"] <= mc_seqno]
        facts = found.get((address, mc_seqno))
        if not mine:
            assert facts is None or interface not in facts
            continue
        newest = max(mine, key=lambda row: row["mc_seqno"])
        assert facts is not None
        assert facts[interface][field] == show_address(newest["owner_workchain"], newest["owner"])


def test_rows_of_a_new_range_are_newer(demo_lake: Path) -> None:
    state = read_state(demo_lake)
    row = read_table(demo_lake, JETTON_WALLETS.name)[0]
    at = state.ranges[-1][1] + 1
    fresh = pa.Table.from_pylist(
        [row | {"mc_seqno": at, "owner": b"n" * 32}], schema=JETTON_WALLETS.arrow
    )
    known = KnownContracts(demo_lake, LakeSettings(), state, {JETTON_WALLETS.name: fresh})
    address = address_of(row)
    found = known.find({(address, at), (address, at - 1)})
    assert found[address, at]["JettonWallet"]["owner"] == f"0:{(b'n' * 32).hex().upper()}"
    assert found[address, at - 1]["JettonWallet"]["owner"] != f"0:{(b'n' * 32).hex().upper()}"


def test_texts_that_are_no_address_are_unknown(demo_lake: Path, tmp_path: Path) -> None:
    asked = {("", 5), ("0:12", 5), ("x" * 66, 5), (f"0:{'00' * 32}", 5)}
    for lake, state in ((demo_lake, read_state(demo_lake)), (tmp_path, LogState())):
        assert KnownContracts(lake, LakeSettings(), state).find(asked) == {}
