"""Recorded traces, compared with the actions of TON Center's classifier."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.ingest.derive.action.compared import compare, equal, list_differences, read_classified
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

_STEP = re.compile(r"([\w()]+)(?:\[(\d+)\])?")


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


def find(action: Shown, path: str) -> Any:
    """Return the value at a dotted path of an action."""
    value: Any = action
    for step in path.split("."):
        match = _STEP.fullmatch(step)
        assert match is not None
        if match[1] == "length()":
            return len(value or [])
        value = value.get(match[1]) if isinstance(value, dict) else None
        if match[2] is not None:
            value = value[int(match[2])] if value else None
    return value


def holds(value: Any, wanted: Any) -> bool:
    """Return whether a value matches a case: objects as subsets, lists as sets."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            holds(value.get(name), each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(any(holds(mine, each) for mine in value) for each in wanted)
        )
    return equal(value, wanted)


def is_selected(action: Shown, select: dict[str, list[Any]] | None) -> bool:
    """Return whether an action satisfies the conditions of a case."""
    if select is None:
        return True
    (how, conditions) = next(iter(select.items()))
    results = [
        equal(find(action, each["path"]), each["value"]) == (each["op"] == "==")
        for each in conditions
    ]
    return all(results) if how == "all" else any(results)


def test_every_case_holds(ours: dict[str, list[Shown]], shared: Path) -> None:
    cases = json.loads((shared / "data/classifier/cases.json").read_bytes())
    for case in cases:
        for wanted in case["expected_actions"]:
            found = [
                action
                for action in ours[case["trace_file"]]
                if action["type"] == wanted["type"] and is_selected(action, wanted["select"])
            ]
            assert found, case["case_id"]
            if wanted["select"] is None:
                assert len(found) == 1, case["case_id"]
            for path, value in wanted["values"].items():
                known = PAIRED.get((case["trace_file"], wanted["type"]), set())
                if path in known | list_later(wanted["type"]):
                    continue
                assert holds(find(found[0], path), value), (case["case_id"], path)


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
