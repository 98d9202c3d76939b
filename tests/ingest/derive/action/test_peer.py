"""Recorded traces, compared with the actions of TON Center's classifier."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.ingest.derive.action.compared import compare, list_differences, read_classified
from tonlake.ingest.command.action import classify_recording, read_traces
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.row import show_actions

Shown = dict[str, Any]

PAIRED = {
    ("b0QdK2TPX7Pv7NiXvpJxf_0PEumbW1FMewsnbFi-nqs=", "dex_withdraw_liquidity"): {
        "dex_withdraw_liquidity_data"
    }
}
"""Differences: the recording lists payouts in database order, not in the order of payment."""

LATER = {"extra", "asset", "asset_secondary", "source_secondary", "accounts"}
"""Columns of tgBTC, whose keys and ids are in ``extra`` now, and of liquidations by EVAA: the
recordings are older."""


def list_later(kind: str) -> set[str]:
    """Return the columns in which actions of a type changed after they were recorded."""
    return LATER if kind.startswith("tgbtc_") or kind == "evaa_liquidate" else set()


@pytest.fixture(scope="module")
def ours(shared: Path) -> dict[str, list[Shown]]:
    """Our actions of each recorded trace, as JSON."""
    found = {}
    for key, trace, interfaces in read_traces(shared / "data/classifier/traces.jsonl.zst"):
        actions = show_actions(trace, classify(trace, interfaces).actions)
        found[key] = json.loads(msgspec.json.encode(actions))
    return found


@pytest.fixture(scope="module")
def theirs(shared: Path) -> dict[str, Any]:
    """The actions of TON Center's classifier, by trace."""
    found: dict[str, Any] = json.loads((shared / "data/classifier/peer_actions.json").read_bytes())
    return found


def test_every_action_is_theirs(ours: dict[str, list[Shown]], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for key, answer in theirs.items():
        mine = {action["action_id"]: action for action in ours[key]}
        assert mine.keys() == {action["action_id"] for action in answer["actions"]}, key
        for action in answer["actions"]:
            differences = list_differences(mine[action["action_id"]], action)
            known = PAIRED.get((key, action["type"]), set()) | list_later(action["type"])
            assert differences <= known, (key, action["type"])


MIN_EQUAL = {
    ("networks", "demo"): 0.998,
    ("networks", "localnet"): 0.998,
    ("mutated", ""): 0.98,
}
"""Minimum share of TON Center's actions that are equal; ``api/DIFFERENCES.md`` explains the
rest."""


@pytest.mark.parametrize(("kind", "network"), MIN_EQUAL)
def test_share_of_equal_actions(shared: Path, kind: str, network: str) -> None:
    folder, end = shared / f"data/classifier-{kind}", f"{network and '-'}{network}.jsonl.zst"
    found = compare(
        read_classified(folder / f"traces{end}"), read_classified(folder / f"peer-actions{end}")
    )
    assert found.share >= MIN_EQUAL[kind, network], found.differences[:20]


def test_command_prints_a_line_for_each_trace(shared: Path, theirs: dict[str, Any]) -> None:
    lines = [
        json.loads(line) for line in classify_recording(shared / "data/classifier/traces.jsonl.zst")
    ]
    assert {line["trace_key"]: line["state"] for line in lines} == {
        key: answer["state"] for key, answer in theirs.items()
    }
