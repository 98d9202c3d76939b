"""Compares a lake built from a node's files with facts from the node's own lite server."""

from pathlib import Path
from typing import Any

from tests.conftest import read_lines
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

STATUS = ("uninit", "frozen", "active", "nonexist")
BLOCK = "workchain shard seqno mc_seqno root_hash file_hash tx_count gen_utime start_lt end_lt"
TRANSACTION = (
    "workchain account lt hash shard block_seqno mc_seqno prev_trans_hash prev_trans_lt now "
    "outmsg_cnt orig_status end_status total_fees in_msg_hash"
)


def ask(lake: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a statement over the newest snapshot."""
    with connect(open_snapshot(lake), statement=sql) as connection:
        return connection.execute(sql).fetchall()


def check_blocks(lake: Path, facts: Path, last_mc_seqno: int) -> None:
    """Every block up to a masterchain block exists exactly once."""
    got = ask(
        lake,
        "select workchain, shard, seqno, mc_seqno, lower(hex(root_hash)), lower(hex(file_hash)), "
        "tx_count, gen_utime, start_lt, end_lt from blocks",
    )
    wanted = [
        tuple(fact[name] for name in BLOCK.split())
        for fact in read_lines(facts / "expected-blocks.jsonl")
        if fact["mc_seqno"] <= last_mc_seqno
    ]
    assert sorted(got) == sorted(wanted)


def check_transactions(lake: Path, facts: Path, last_mc_seqno: int) -> None:
    """Every transaction exists once, with account, lt, hash, fees, statuses and messages."""
    got = ask(
        lake,
        "select workchain, lower(hex(account)), lt, lower(hex(hash)), shard, block_seqno, "
        "mc_seqno, lower(hex(prev_trans_hash)), prev_trans_lt, now, outmsg_cnt, orig_status, "
        "end_status, total_fees, lower(hex(in_msg_hash)) from transactions",
    )
    expected = [
        fact
        for fact in read_lines(facts / "expected-transactions.jsonl")
        if fact["mc_seqno"] <= last_mc_seqno
    ]
    wanted = [
        tuple(
            STATUS[fact[name]] if name.endswith("status") else fact[name]
            for name in TRANSACTION.split()
        )
        for fact in expected
    ]
    assert sorted(got, key=str) == sorted(wanted, key=str)
    out_messages = ask(
        lake,
        "select lower(hex(tx_hash)), list(lower(hex(msg_hash)) order by msg_index) "
        "from messages where direction = 'out' group by 1",
    )
    assert dict(out_messages) == {
        fact["hash"]: fact["out_msg_hashes"] for fact in expected if fact["out_msg_hashes"]
    }


def check_accounts(lake: Path, facts: Path) -> None:
    """The last state of every account: status, balance, code and data hash."""
    got = ask(
        lake,
        "select workchain || ':' || lower(hex(account)), account_status, balance, "
        "lower(hex(code_hash)), lower(hex(data_hash)) from latest_account_states",
    )
    wanted = {
        (
            fact["address"],
            fact["status"],
            int(fact.get("balance") or 0),
            fact.get("code_hash"),
            fact.get("data_hash"),
        )
        for fact in read_lines(facts / "expected-accounts.jsonl")
        # The list also names addresses that were queried and never had a transaction.
        if fact["status"] != "nonexist" or fact["tx_count"]
    }
    assert set(got) == wanted
