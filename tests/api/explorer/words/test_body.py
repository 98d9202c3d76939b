"""Decoded bodies as trees: wrappers are gone, dictionaries are entries, large values are cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import read
from tonlake.api.explorer.words.body import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    Node,
    list_body,
    list_values,
    unwrap,
)
from tonlake.api.v3.layout.transaction import Message, MessageContent
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.derive.body.codec import Unsigned
from tonlake.ingest.derive.body.composite import Hashmap

JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(JSON)
def test_bodies_without_wrapping_stay(value: Any) -> None:
    assert unwrap(value) == value


def test_bodies_are_unwrapped() -> None:
    wrapped = {
        "@type": "jetton_transfer",
        "amount": {"@type": "var_uint", "len": "5", "value": "7"},
        "destination": {
            "@type": "addr_std",
            "anycast": {"@type": "nothing_from_maybe"},
            "workchain_id": "0",
            "address": "AB",
        },
        "response": {"@type": "addr_none"},
        "payload": {"@type": "something_from_maybe", "value": ["x"]},
    }
    assert unwrap(wrapped) == {
        "@type": "jetton_transfer",
        "amount": "7",
        "destination": "0:AB",
        "response": None,
        "payload": ["x"],
    }


def test_amounts_of_ton_are_written() -> None:
    amount = {"@type": "nanograms", "amount": {"@type": "var_uint", "len": "4", "value": "5000000"}}
    assert list_values({"value": amount}) == (Node("value", "0.005 TON"),)


@pytest.mark.parametrize(
    "name", ["jetton_amount", "jettons_to_unstake", "min_lp_amount", "new_supply", "tokens"]
)
def test_amounts_of_jettons_are_numbers(name: str) -> None:
    amount = {"@type": "nanograms", "amount": {"@type": "var_uint", "len": "4", "value": "5000000"}}
    assert list_values({name: amount}) == list_values({name: "5000000"}) == (Node(name, "5000000"),)


@pytest.mark.parametrize("name", ["ton_amount", "price_per_token"])
def test_amounts_beside_them_are_ton(name: str) -> None:
    amount = {"@type": "nanograms", "amount": {"@type": "var_uint", "len": "4", "value": "5000000"}}
    assert list_values({name: amount}) == (Node(name, "0.005 TON"),)


def test_accounts_and_sets_are_known() -> None:
    raw = f"0:{'AB' * 32}"
    found = list_values({"to": raw, "set": {"1": {}, "7": {}}, "none": None, "flag": True})
    assert found == (
        Node("to", raw, is_account=True),
        Node("set", "1, 7"),
        Node("none", "none"),
        Node("flag", "yes"),
    )


@pytest.mark.parametrize(
    ("value", "count"),
    [({"x": "y" * 2 * MAX_CHARACTERS}, 1), ([1] * 2 * MAX_VALUES, MAX_VALUES)],
)
def test_large_bodies_are_cut(value: Any, count: int) -> None:
    nodes = list_values(value)
    assert count <= len(nodes) <= count + 1
    assert sum(len(node.text) for node in nodes) < 2 * MAX_CHARACTERS + 100


def test_deep_bodies_end() -> None:
    coins = {"@type": "nanograms", "amount": {"@type": "var_uint", "len": "0", "value": "0"}}
    value: Any = "x"
    for _ in range(3 * MAX_DEPTH):
        value = {"in": value, "fee": coins}
    depth, nodes = 0, list_values(value)
    while nodes and nodes[0].children:
        depth, nodes = depth + 1, nodes[0].children
    assert depth == MAX_DEPTH


def test_a_message_without_a_layout_has_no_tree() -> None:
    empty: dict[str, Any] = dict.fromkeys(Message.__struct_fields__[:18])
    message = Message(**(empty | {"hash": ""}))
    assert list_body(message) == ()
    message.message_content = MessageContent("", "", {"a": "b"})
    assert list_body(message) == (Node("a", "b"),)


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.integers(0, 255), min_size=1, max_size=20))
def test_dictionaries_are_entries(entries: dict[int, int]) -> None:
    builder = CellBuilder()
    pairs = sorted(entries.items())
    root = build_hashmap(builder.tree, pairs, 32, lambda node, value: node.store_uint(value, 8))
    decoded = read(Hashmap(32, Unsigned(8)), builder.tree.slice(root))
    assert unwrap(decoded) == {str(key): str(value) for key, value in pairs}


def test_numbers_of_parameters_and_workchains_are_signed() -> None:
    keys: dict[str, Any] = {"0": {}, str(2**31 - 1): {}, str(2**32 - 1): {}}
    found = unwrap({"critical_params": keys, "other": keys})
    assert list(found["critical_params"]) == ["0", str(2**31 - 1), "-1"]
    assert list(found["other"]) == list(keys)
    assert unwrap({"critical_params": {"@type": "cfg_vote_cfg", "min_wins": "2"}}) == {
        "critical_params": {"@type": "cfg_vote_cfg", "min_wins": "2"}
    }


def test_values_have_the_unit_of_their_name() -> None:
    body = {"forward_ton_amount": "20000000", "valid_until": "1795235211", "amount": "5"}
    spans = {"validators_elected_for": 65536, "created_at": "0", "max_stake_factor": "98304"}
    assert [node.text for node in list_values(body | spans)] == [
        *("0.02 TON", "1795235211 (2026-11-21 04:26:51)", "5"),
        *("65,536 s (18 h)", "0", "98304 (1.5 times)"),
    ]


def test_a_type_is_said_once() -> None:
    nodes = list_values({"@type": "text_comment", "type": "text_comment", "comment": ""})
    assert [(node.name, node.text) for node in nodes] == [("type", "text_comment"), ("comment", "")]
    key = "E8" * 32
    assert [node.text for node in list_values({"key": key, "text": key})] == [key.lower(), key]
