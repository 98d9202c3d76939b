"""The comparison of two classifiers' actions, on actions that differ in known ways."""

import json
from pathlib import Path
from typing import Any

from tests.ingest.derive.action.compared import compare, equal, read_classified


def make(action_id: str, **more: object) -> dict[str, Any]:
    """Return an action."""
    return {"action_id": action_id, "type": "ton_transfer", "value": 1, **more}


def trace(*actions: dict[str, Any], state: str = "ok") -> dict[str, Any]:
    """Return a classified trace."""
    return {"trace_key": "k", "state": state, "actions": list(actions)}


def test_actions_are_counted_by_type_and_outcome() -> None:
    mine = {"k": trace(make("a"), make("b"), make("c", type="call_contract"))}
    theirs = {"k": trace(make("a"), make("b", value=2), make("d"))}
    found = compare(mine, theirs)
    assert found.counts == {
        ("ton_transfer", "equal"): 1,
        ("ton_transfer", "different"): 1,
        ("ton_transfer", "only theirs"): 1,
        ("call_contract", "only mine"): 1,
    }
    assert found.share == 1 / 3
    assert [each.columns for each in found.differences] == [(), ("value",), ()]
    assert not found.states


def test_a_trace_of_one_side_and_another_state_are_differences() -> None:
    found = compare({"k": trace(make("a"), state="broken")}, {"k": trace(make("a")), "m": trace()})
    assert found.total("equal") == 1
    assert len(found.states) == 2


def test_order_counts_where_it_means_something() -> None:
    assert equal(["a", "b"], ["b", "a"], "accounts")
    assert not equal(["a", "b"], ["b", "a"], "signers")
    assert equal({"vault_excesses": [{"a": 1}, {"a": 2}]}, {"vault_excesses": [{"a": 2}, {"a": 1}]})


def test_nulls_may_be_missing_and_numbers_be_rounded() -> None:
    assert equal({"a": None}, {})
    assert equal({"value_extra_currencies": {}}, {})
    assert not equal({"a": {}}, {})
    assert equal(2**60 + 1, float(2**60))
    assert not equal(2**60 + 1, 2**60)
    assert not equal({"a": 1}, {"a": True})


def test_both_forms_of_files_are_read(tmp_path: Path) -> None:
    lines, one = tmp_path / "lines.jsonl", tmp_path / "one.json"
    lines.write_text(json.dumps(trace(make("a"))) + "\n")
    one.write_text(json.dumps({"k": {"state": "ok", "actions": [make("a")]}}))
    found = compare(read_classified(lines), read_classified(one))
    assert (found.total("equal"), found.differences, found.states) == (1, [], [])
