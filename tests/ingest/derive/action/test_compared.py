"""The comparison of two classifiers' actions, on actions that differ in known ways."""

import math
from typing import Any

from tests.ingest.derive.action.compared import compare, equal


def make(action_id: str, **more: object) -> dict[str, Any]:
    return {"action_id": action_id, "type": "ton_transfer", "value": 1, **more}


def test_what_differs_or_is_missing_is_named() -> None:
    mine = {"k": {"actions": [make("a"), make("b"), make("c", type="call_contract")]}}
    theirs = {"k": {"actions": [make("a"), make("b", value=2), make("d")]}, "m": {}}
    share, differences = compare(mine, theirs)
    assert math.isclose(share, 1 / 3)
    assert differences == [("k", "ton_transfer", ["value"]), ("k", "ton_transfer", ["action_id"])]
    assert compare({}, theirs).share == 0


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
