"""Outcomes of transactions: every combination of phases on the demo lake, and single cases."""

from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import msgspec
import pytest
from litestar.testing import TestClient
from msgspec import UNSET

from tonlake.api.explorer.words.outcome import (
    _PHASES,
    BAD,
    GOOD,
    PLAIN,
    ShownOutcome,
    explain_exit_code,
    explain_result_code,
    judge,
    list_postings,
    load_codes,
    split_fees,
)
from tonlake.api.v3.layout.transaction import (
    ActionPhase,
    BouncePhase,
    ComputePhase,
    Transaction,
    TransactionDescr,
)


def _judge(
    compute: ComputePhase | None = None,
    action: ActionPhase | None = None,
    bounce: str = "",
    interfaces: tuple[str, ...] = (),
) -> ShownOutcome:
    empty: dict[str, Any] = dict.fromkeys(Transaction.__struct_fields__[:17])
    failed = compute is not None and compute.success is not True
    about = TransactionDescr(
        type="ord",
        aborted=failed or (action is not None and action.success is False),
        compute_ph=UNSET if compute is None else compute,
        action=UNSET if action is None else action,
        bounce=BouncePhase(type=bounce) if bounce else UNSET,
    )
    names = Mock(interfaces=lambda _account: interfaces)
    return judge(Transaction(**empty | {"description": about}), names)


@pytest.mark.parametrize(
    ("bounce", "kind", "word", "more"),
    [("", GOOD, "received", ""), ("ok", BAD, "bounced", "; the message was bounced")],
)
def test_no_code_receives_the_unbounced(bounce: str, kind: str, word: str, more: str) -> None:
    outcome = _judge(ComputePhase(skipped=True, reason="no_state"), bounce=bounce)
    assert outcome == ShownOutcome(kind, word, f"the account has no code{more}")


@pytest.mark.parametrize("reason", ["no_gas", "bad_state", "suspended", "newer_reason"])
def test_code_that_did_not_run(reason: str) -> None:
    outcome = _judge(ComputePhase(skipped=True, reason=reason))
    assert (outcome.kind, outcome.word) == (PLAIN, "not run")
    assert outcome.detail


def test_the_phase_that_failed_is_named_with_code_and_meaning() -> None:
    ran = ComputePhase(skipped=False, success=True, exit_code=0)
    outcome = _judge(ran, ActionPhase(success=False, result_code=37, no_funds=True))
    assert outcome == ShownOutcome(BAD, "failed", "action phase, result code 37: not enough TON")
    thrown = ComputePhase(skipped=False, success=False, exit_code=706)
    assert _judge(thrown, bounce="ok").detail == (
        "compute phase, exit code 706; the message was bounced"
    )
    assert _judge(thrown, interfaces=("jetton_wallet_v1",)).detail == (
        "compute phase, exit code 706: the jetton balance is too low"
    )


def test_the_exit_code_of_a_recorded_run_is_named() -> None:
    outcome = _judge(ComputePhase(skipped=False, exit_code=1040))
    assert outcome == ShownOutcome(BAD, "failed", "compute phase, exit code 1040")


def test_ignored_errors_of_actions_are_mentioned() -> None:
    ran = ComputePhase(skipped=False, success=True, exit_code=0)
    outcome = _judge(ran, ActionPhase(success=True, result_code=0, skipped_actions=2))
    assert outcome == ShownOutcome(
        GOOD, "succeeded", "2 actions were skipped because of an error (send mode 2)"
    )


def test_codes_of_domains_stand_beside_those_of_nfts() -> None:
    domain = ["dns", "editable", "nft_item"]
    assert explain_exit_code(411, domain) == explain_exit_code(401, domain)
    assert explain_exit_code(407, domain) == "the bid is too low"
    assert explain_exit_code(407, ["nft_item"]) == ""


def test_the_narrowest_scope_explains_a_code() -> None:
    assert explain_exit_code(73, ["jetton_wallet_governed"]) != explain_exit_code(
        73, ["jetton_master"]
    )
    assert explain_exit_code(73, []) == ""
    assert "gas" in explain_exit_code(-14, ["jetton_wallet"])
    assert explain_result_code(9999) == ""


def test_the_table_of_codes_has_only_names_of_interfaces() -> None:
    text = files("tonlake.ingest.derive.contract").joinpath("interfaces.txt").read_text()
    names = [line.split("\t")[0] for line in text.splitlines() if not line.startswith("#")]
    for scope in {scope for scope, _code in load_codes()} - {"compute", "action"}:
        assert any(name.startswith(scope) for name in names), scope


def _read_failures(demo_lake: Path) -> list[tuple[Any, ...]]:
    """Return hash and phases of the aborted transactions of a lake, by SQL over its files."""
    columns = "lower(hex(hash)), compute_skip_reason, bounce, compute_exit_code, action_result_code"
    rows = duckdb.read_parquet(f"{demo_lake}/transactions/**/*.parquet")
    return rows.filter("aborted").project(columns).fetchall()


def test_pages_agree_with_the_phases_of_every_failure_on_the_demo(
    client: TestClient[Any], demo_lake: Path
) -> None:
    rows = _read_failures(demo_lake)
    assert len(rows) > 20
    for tx_hash, reason, bounce, exit_code, result_code in rows:
        text = client.get(f"/transaction/{tx_hash}").text
        is_red = 'class="badge bad"' in text
        if reason == "no_state" and bounce is None:
            assert not is_red
            assert ">received</span>" in text
        elif reason is None:
            assert is_red
            wanted = f"result code {result_code}" if exit_code == 0 else f"exit code {exit_code}"
            assert wanted in text


def test_a_trace_lists_what_failed(client: TestClient[Any], demo_lake: Path) -> None:
    tx_hash = next(row[0] for row in _read_failures(demo_lake) if row[3] == 706)
    text = client.get(f"/trace/{tx_hash}").text
    assert "Failures" in text
    assert "exit code 706: the jetton balance is too low" in text


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
            assert sum(amount for _title, amount in lines) == change
            compared += 1
            # Nothing is left that no field explains, but where the chain makes or burns TON.
            if each.description.type == "ord" and int(before.balance) > 0:
                assert not any(title == "Other changes" for title, _amount in lines)
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
    kind, word, text = {name: describe for _, name, describe in _PHASES}[title](facts, meanings)
    assert (kind, word) == words[:2]
    assert words[2] in text
