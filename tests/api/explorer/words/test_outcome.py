"""Outcomes of transactions: every combination of phases on the demo lake, and single cases."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pytest
from litestar.testing import TestClient
from msgspec import UNSET

from tonlake.api.explorer.words.outcome import (
    BAD,
    GOOD,
    PLAIN,
    Outcome,
    explain_exit_code,
    explain_result_code,
    judge,
    load_codes,
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
) -> Outcome:
    empty: dict[str, Any] = dict.fromkeys(Transaction.__struct_fields__[:17])
    failed = compute is not None and compute.success is not True
    about = TransactionDescr(
        type="ord",
        aborted=failed or (action is not None and action.success is False),
        compute_ph=UNSET if compute is None else compute,
        action=UNSET if action is None else action,
        bounce=BouncePhase(type=bounce) if bounce else UNSET,
    )
    return judge(Transaction(**empty | {"description": about}), interfaces)


def test_ton_for_an_account_without_code_are_received() -> None:
    outcome = _judge(ComputePhase(skipped=True, reason="no_state"))
    assert outcome == Outcome(GOOD, "received", "the account has no code")


def test_a_bounced_message_is_no_receipt() -> None:
    outcome = _judge(ComputePhase(skipped=True, reason="no_state"), bounce="ok")
    assert (outcome.kind, outcome.word) == (BAD, "bounced")
    assert outcome.detail == "the account has no code; the message was bounced"


@pytest.mark.parametrize("reason", ["no_gas", "bad_state", "suspended", "newer_reason"])
def test_code_that_did_not_run(reason: str) -> None:
    outcome = _judge(ComputePhase(skipped=True, reason=reason))
    assert (outcome.kind, outcome.word) == (PLAIN, "not run")
    assert outcome.detail


def test_the_phase_that_failed_is_named_with_code_and_meaning() -> None:
    ran = ComputePhase(skipped=False, success=True, exit_code=0)
    outcome = _judge(ran, ActionPhase(success=False, result_code=37, no_funds=True))
    assert outcome == Outcome(BAD, "failed", "action phase, result code 37: not enough TON")
    thrown = ComputePhase(skipped=False, success=False, exit_code=706)
    assert _judge(thrown, bounce="ok").detail == (
        "compute phase, exit code 706; the message was bounced"
    )
    assert _judge(thrown, interfaces=("jetton_wallet_v1",)).detail == (
        "compute phase, exit code 706: the jetton balance is too low"
    )


def test_the_exit_code_of_a_recorded_run_is_named() -> None:
    outcome = _judge(ComputePhase(skipped=False, exit_code=1040))
    assert outcome == Outcome(BAD, "failed", "compute phase, exit code 1040")


def test_ignored_errors_of_actions_are_mentioned() -> None:
    ran = ComputePhase(skipped=False, success=True, exit_code=0)
    outcome = _judge(ran, ActionPhase(success=True, result_code=0, skipped_actions=2))
    assert outcome == Outcome(
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
