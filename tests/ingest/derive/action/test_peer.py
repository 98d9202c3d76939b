"""Recorded traces, held against what TON Center's classifier said of them."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tonlake.ingest.command.action import classify_recording
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.row import show_actions
from tonlake.ingest.derive.recording.action import read_traces

if TYPE_CHECKING:
    from pathlib import Path

Shown = dict[str, Any]

GHOSTS = "S4XM4TRqBSWvsrGUQY_NLEbIRM7q7iS6hx-uWg4Hv14="
"""A trace of messages that were never sent: how their ids are made is not known."""

_SETS = {"tx_hashes", "accounts"}
_STEP = re.compile(r"([\w()]+)(?:\[(\d+)\])?")


@pytest.fixture(scope="module")
def ours(shared: Path) -> dict[str, list[Shown]]:
    """Our actions of each recorded trace, as JSON has them."""
    found = {}
    for key, trace, interfaces in read_traces(shared / "data/classifier/traces.jsonl.zst"):
        actions = show_actions(trace, classify(trace, interfaces).actions)
        found[key] = json.loads(msgspec.json.encode(actions))
    return found


@pytest.fixture(scope="module")
def theirs(shared: Path) -> dict[str, Any]:
    """What TON Center's classifier said, by trace."""
    found: dict[str, Any] = json.loads((shared / "data/classifier/peer_actions.json").read_bytes())
    return found


def equal(left: Any, right: Any) -> bool:
    """Compare JSON; a null may be missing, and large numbers of theirs are not exact."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return math.isclose(left, right, rel_tol=1e-9)
    if isinstance(left, dict) and isinstance(right, dict):
        return all(equal(left.get(name), right.get(name)) for name in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def list_differences(mine: Shown, their: Shown) -> set[str]:
    """Return the columns in which two actions differ."""
    return {
        name
        for name in mine.keys() | their.keys()
        if not equal(
            *(
                sorted(each.get(name) or []) if name in _SETS else each.get(name)
                for each in (mine, their)
            )
        )
    }


def test_every_action_is_theirs(ours: dict[str, list[Shown]], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for key, answer in theirs.items():
        if key == GHOSTS:
            continue
        mine = {action["action_id"]: action for action in ours[key]}
        assert mine.keys() == {action["action_id"] for action in answer["actions"]}, key
        for action in answer["actions"]:
            assert not list_differences(mine[action["action_id"]], action), (key, action["type"])


def test_messages_never_sent_are_theirs_but_for_ids(
    ours: dict[str, list[Shown]], theirs: dict[str, Any]
) -> None:
    mine, their = ours[GHOSTS], theirs[GHOSTS]["actions"]
    assert len(mine) == len(their) == 2
    assert len({action["action_id"] for action in mine}) == 2
    assert list_differences(mine[0], their[0]) == {"action_id"}


def find(action: Shown, path: str) -> Any:
    """Return what stands at a dotted path of an action."""
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
    """Tell whether a value is as a case wants it: objects as subsets, lists as sets."""
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
    """Tell whether an action fulfils the conditions of a case."""
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
        if case["trace_file"] == GHOSTS:
            continue  # it selects by ids
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
                assert holds(find(found[0], path), value), (case["case_id"], path)


def test_command_prints_a_line_for_each_trace(shared: Path, theirs: dict[str, Any]) -> None:
    lines = [
        json.loads(line) for line in classify_recording(shared / "data/classifier/traces.jsonl.zst")
    ]
    assert {line["trace_key"]: line["state"] for line in lines} == {
        key: answer["state"] for key, answer in theirs.items()
    }
