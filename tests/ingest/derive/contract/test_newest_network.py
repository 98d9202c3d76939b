"""Contracts of the Tolk compiler, version 15: tables equal what the lite server answers."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import read_lines
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

WALLETS_OF_TOLK = ("tolk5_3", "tolk5_7")
_SLICE = re.compile(r"<Slice 267\[([0-9A-F]{68})\]")

TABLES = {
    "get_jetton_data": ("jetton_masters", "total_supply", ("admin",)),
    "get_wallet_data": ("jetton_wallets", "balance", ("owner", "jetton")),
    "get_collection_data": ("nft_collections", "next_item_index", ("owner",)),
    "get_nft_data": ("nft_items", "-init::int", ("collection", "owner")),
}
"""By get-method: the table, the column of its first integer, and those of its addresses."""


@pytest.fixture(scope="module")
def recorded(newest_node: Path, shared: Path) -> dict[str, Any]:  # noqa: ARG001 - skips
    path = shared / "node-2026" / "expected-contracts.json.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


@pytest.fixture(scope="module")
def ask(newest_lake: Path) -> Iterator[Callable[..., list[Any]]]:
    with closing(connect(open_snapshot(newest_lake), LakeSettings())) as connection:
        yield lambda query, *values: connection.execute(query, values).fetchall()


def list_answers(recorded: dict[str, Any], method: str) -> Iterator[tuple[bytes, int, list[Any]]]:
    """Yield account, masterchain block, first integer and accounts of each recorded answer."""
    for moment in ("first", "second"):
        for contract in recorded[moment].values():
            answer = contract["get"].get(method)
            if answer is not None and answer["exit_code"] == 0:
                account = bytes.fromhex(contract["address"].partition(":")[2])
                number = int(answer["stack"].lstrip("[").partition(",")[0])
                slices = _SLICE.findall(answer["stack"])
                accounts = [(int(one, 16) >> 5 & (1 << 256) - 1).to_bytes(32) for one in slices]
                yield account, answer["mc"], [number, *accounts]


ROWS = {
    "blocks": """select workchain, hex(shard), seqno, hex(root_hash), hex(file_hash), mc_seqno,
        tx_count, boc_bytes, gen_utime, start_lt, end_lt, after_split, after_merge, key_block,
        gen_catchain_seqno, gen_software_version from blocks where mc_seqno <= 1146""",
    "transactions": """select workchain, hex(account), lt, hex(hash), hex(shard), block_seqno,
        mc_seqno from transactions where mc_seqno <= 1146""",
    "accounts": """select workchain, hex(account), hex(hash), balance, storage_last_trans_lt,
        'account_' || account_status, hex(code_hash), hex(data_hash)
        from states_as_of('account_states', 1146)""",
}
"""What the lake has of the facts of the lite server, up to the block that they end with."""


@pytest.mark.parametrize(
    ("name", "count"), [("blocks", 3805), ("transactions", 8983), ("accounts", 33)]
)
def test_rows_equal_the_lite_servers(
    name: str, count: int, ask: Callable[..., list[Any]], shared: Path
) -> None:
    (path,) = (shared / "node-2026").glob(f"expected-{name}.jsonl*")
    facts = [[*line.values()] for line in read_lines(path)]
    rows = [
        [*row[:2], "nonexist"] if row[-3] == "account_nonexist" else [*row]
        for row in ask(ROWS[name])
    ]
    assert len(facts) == count
    assert {str(row).lower() for row in rows} == {str(fact).lower() for fact in facts}


@pytest.mark.parametrize("method", TABLES)
def test_contract_tables_equal_the_get_methods(
    method: str, recorded: dict[str, Any], ask: Callable[..., list[Any]]
) -> None:
    table, number, owners = TABLES[method]
    count = 0
    for account, mc_seqno, wanted in list_answers(recorded, method):
        query = (
            f"select {number}, {', '.join(owners)} from {table} "  # noqa: S608 - names of ours
            "where account = ? and mc_seqno <= ? order by mc_seqno desc, lt desc limit 1"
        )
        (row,) = ask(query, account, mc_seqno)
        assert [int(row[0]), *row[1:]] == wanted[: len(row)]
        count += 1
    assert count > 0


def test_transfers_are_named(ask: Callable[..., list[Any]]) -> None:
    counts = dict(ask("select type, count(*) from actions group by all"))
    assert counts["jetton_transfer"] == ask("select count(*) from jetton_transfers")[0][0] > 0
    assert counts["nft_transfer"] == ask("select count(*) from nft_transfers")[0][0] > 0
    assert counts["jetton_mint"] > 0
    assert counts["nft_mint"] > 0


def test_wallets_compiled_by_tolk_are_wallets(
    recorded: dict[str, Any], ask: Callable[..., list[Any]]
) -> None:
    for name in WALLETS_OF_TOLK:
        contract = recorded["second"][name]
        account = bytes.fromhex(contract["address"].partition(":")[2])
        answer = contract["get"]["seqno"]
        query = (
            "select kind, seqno from wallets where account = ? and mc_seqno <= ? "
            "order by mc_seqno desc limit 1"
        )
        seqno = int(answer["stack"].strip("[]"))
        assert ask(query, account, answer["mc"]) == [("wallet_v5r1", seqno)]


def test_bounces_of_the_new_form(ask: Callable[..., list[Any]]) -> None:
    """Both ends of 446 messages; each says why it came back."""
    new = "opcode = -2 and bounced"
    assert ask(f"select count(*) from messages where {new}") == [(892,)]  # noqa: S608
    undecoded = (
        f"select count(*) from messages anti join message_bodies b using (body_hash) where {new}"  # noqa: S608
    )
    assert ask(undecoded) == [(0,)]
    reasons = ask(
        "select details->>'$.extra.bounced_by_phase', details->>'$.extra.exit_code', count(*) "
        "from actions where opcode = 4294967294 group by all order by all"
    )
    assert [(int(phase), int(code)) for phase, code, _ in reasons] == [
        *((0, -1), (1, -14), (1, 77), (2, 37)),
    ]
    assert sum(count for *_, count in reasons) == 446


def test_bounced_transfers_are_marked_failed(ask: Callable[..., list[Any]]) -> None:
    """A transfer counts as failed if the transaction that received it bounced the message."""
    for table in ("jetton_transfers", "jetton_burns", "nft_transfers"):
        query = f"""
            select count(*), count(*) filter (m.aborted <> (t.bounce is not null))
            from {table} m join transactions t on t.hash = m.tx_hash
        """  # noqa: S608 - a table of ours
        ((count, wrong),) = ask(query)
        assert count > 0
        assert wrong == 0
    aborted = ask("select count(*) from nft_transfers where aborted")[0][0]
    assert aborted > 0
