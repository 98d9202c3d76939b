"""Phases in words, and money whose lines add up to the change of the balance."""

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from litestar.testing import TestClient

from tonlake.api.explorer.words.outcome import BAD, GOOD, PLAIN
from tonlake.api.explorer.words.phase import _WORDS, list_postings, split_fees
from tonlake.api.v3.layout.transaction import Transaction


@pytest.fixture(scope="module")
def transactions(client: TestClient[Any], demo_lake: Path) -> list[Transaction]:
    """Transactions of every kind that the demo lake has."""
    rows = duckdb.read_parquet(f"{demo_lake}/transactions/**/*.parquet")
    kinds = "any_value(lower(hex(hash)))", "descr, compute_success, action_success, bounce"
    found = []
    for row in rows.aggregate(f"{kinds[0]} as hash, {kinds[1]}", kinds[1]).fetchall():
        answer = client.get("/api/v3/transactions", params={"hash": row[0]}).json()
        found += msgspec.convert(answer["transactions"], list[Transaction])
    assert len(found) > 3
    return found


def test_money_adds_up(transactions: list[Transaction]) -> None:
    compared = 0
    for each in transactions:
        before, after = each.account_state_before, each.account_state_after
        lines = list_postings(each)
        if before and after and before.balance is not None and after.balance is not None:
            change = int(after.balance) - int(before.balance)
            assert sum(line.amount for line in lines) == change
            compared += 1
            # Nothing is left that no field explains, but where the chain makes or burns TON.
            if each.description.type == "ord" and int(before.balance) > 0:
                assert not any(line.title == "Other changes" for line in lines)
    assert compared


def test_fees_are_the_total(transactions: list[Transaction]) -> None:
    for each in transactions:
        assert sum(split_fees(each).values()) >= int(each.total_fees)


@pytest.mark.parametrize(
    ("title", "facts", "meanings", "words"),
    [
        ("Storage", {"storage_fees_collected": "5"}, {}, (PLAIN, "paid", "0.000000005 TON")),
        ("Storage", {"storage_fees_due": "7"}, {}, (BAD, "unpaid", "0.000000007 TON still due")),
        ("Credit", {"credit": "1000000000"}, {}, (PLAIN, "credited", "1 TON")),
        ("Compute", {"skipped": True, "reason": "no_state"}, {}, (PLAIN, "skipped", "no code")),
        (
            "Compute",
            {"success": False, "exit_code": 9, "vm_steps": 5, "gas_used": "1200"},
            {"exit_code": "cell underflow"},
            (BAD, "failed", "exit code 9: cell underflow; 5 steps, 1,200 gas"),
        ),
        ("Compute", {"skipped": False, "exit_code": 1}, {}, (GOOD, "succeeded", "exit code 1")),
        ("Compute", {"skipped": False, "exit_code": 4}, {}, (BAD, "failed", "exit code 4")),
        (
            "Action",
            {"success": False, "result_code": 37, "tot_actions": 1},
            {"result_code": "not enough TON"},
            (BAD, "failed", "not enough TON; result code 37"),
        ),
        ("Action", {"success": True, "msgs_created": 1}, {}, (GOOD, "succeeded", "1 message sent")),
        ("Bounce", {"type": "ok"}, {}, (BAD, "bounced", "the message was bounced")),
        ("Bounce", {"type": "nofunds"}, {}, (BAD, "not bounced", "not enough TON")),
    ],
)
def test_phases_are_told(
    title: str, facts: dict[str, Any], meanings: dict[str, str], words: tuple[str, str, str]
) -> None:
    kind, word, text = _WORDS[title](facts, meanings)
    assert (kind, word) == words[:2]
    assert words[2] in text
