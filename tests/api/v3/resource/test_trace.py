"""Rendered traces: trees of any depth, and the parts omitted from large ones."""

import base64
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.ingest.derive.action.protocol import test_telegram as telegram_requests
from tests.ingest.derive.action.scene import Scene
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.layout.transaction import AccountState, Message, Transaction, TransactionDescr
from tonlake.api.v3.resource.action import render_action
from tonlake.api.v3.resource.answer import encode_tree, head_of, render_trace
from tonlake.api.v3.resource.transaction import find_workchain, render_decoded
from tonlake.ingest.derive.action.protocol import telegram
from tonlake.ingest.derive.action.row import list_rows, make_tables
from tonlake.lake.schema import ACTIONS

STATE = AccountState(hash="")
ROW: dict[str, Any] = {
    "trace_id": b"\x01" * 32,
    "external_hash": None,
    "mc_seqno_start": 7,
    "mc_seqno_end": 8,
    "start_lt": 70,
    "end_lt": 80,
    "start_utime": 700,
    "end_utime": 800,
    "state": "complete",
    "transactions": 1,
    "messages": 0,
    "pending_messages": 0,
}


def make_message(name: str) -> Message:
    """Make a message of which only the hash matters."""
    fields: dict[str, Any] = dict.fromkeys(Message.__struct_fields__)
    for omitted in ("in_msg_tx_hash", "out_msg_tx_hash", "hash_norm"):
        del fields[omitted]
    return Message(**fields | {"hash": name})


def make_transaction(name: str, *, sent: int = 0, arrived: bool = True) -> Transaction:
    """Make a transaction that sent a number of messages."""
    return Transaction(
        account="",
        hash=name,
        lt="0",
        now=0,
        mc_block_seqno=1,
        prev_trans_hash="",
        prev_trans_lt="0",
        orig_status="active",
        end_status="active",
        total_fees="0",
        total_fees_extra_currencies={},
        description=TransactionDescr(type="ord"),
        block_ref=None,
        in_msg=make_message(f"to {name}") if arrived else None,
        out_msgs=[make_message(f"from {name}")] * sent,
        account_state_before=STATE,
        account_state_after=STATE,
    )


def decode_tree(*transactions: Transaction, **children: list[str]) -> Any:
    """Return the tree of the transactions, of which ``a`` is the root."""
    known = {transaction.hash: head_of(transaction) for transaction in transactions}
    tree: dict[str, list[str]] = {name: [] for name in known}
    tree |= children
    return json.loads(encode_tree("a", tree, known))


def test_children_stand_in_order_below_their_parent() -> None:
    tree = decode_tree(
        make_transaction("a", sent=2),
        make_transaction("b", sent=1),
        make_transaction("c"),
        make_transaction("d"),
        a=["b", "c"],
        b=["d"],
    )
    leaf = {"tx_hash": "d", "in_msg_hash": "to d", "children": []}
    assert tree == {
        "tx_hash": "a",
        "in_msg_hash": "to a",
        "children": [
            {"tx_hash": "b", "in_msg_hash": "to b", "children": [leaf]},
            {"tx_hash": "c", "in_msg_hash": "to c", "children": []},
        ],
    }


def test_a_root_without_message_has_no_message_hash() -> None:
    assert decode_tree(make_transaction("a", arrived=False)) == {"tx_hash": "a", "children": []}


def test_what_was_sent_and_has_not_arrived_makes_children_null() -> None:
    assert decode_tree(make_transaction("a", sent=1))["children"] is None


def test_a_tree_may_be_deeper_than_any_recursion() -> None:
    names = ["a", *map(str, range(4000))]
    known = {name: head_of(make_transaction(name, sent=1)) for name in names}
    children = {name: [below] for name, below in pairwise(names)}
    text = encode_tree("a", children | {names[-1]: []}, known).decode()
    assert text.count('"tx_hash"') == 4001
    assert text.endswith('"children":null}' + "]}" * 4000)


@pytest.mark.parametrize("state", ["complete", "pending", "broken"])
def test_only_a_complete_trace_is_not_incomplete(state: str) -> None:
    name = encode_bytes(ROW["trace_id"])
    members = [{"hash": ROW["trace_id"], "parent_hash": None}]
    shown = make_transaction(name)
    trace = render_trace(ROW | {"state": state}, members, [(shown, head_of(shown))])
    assert trace.trace_info.trace_state == state
    assert trace.is_incomplete == (state != "complete")
    assert trace.transactions_order == [name]


def test_a_trace_that_is_too_large_is_shown_without_transactions() -> None:
    rendered = render_trace(ROW | {"transactions": 4001}, None, ())
    trace = json.loads(msgspec.json.encode(rendered))
    assert trace["is_incomplete"] is True
    assert trace["warning"] == "trace is too large"
    assert not {"trace", "transactions", "transactions_order", "actions"} & trace.keys()
    assert trace["trace_info"]["transactions"] == 4001


def show(scene: Scene) -> Mapping[str, dict[str, Any]]:
    """Return the actions of a scene by type, as clients read them."""
    rows = [*list_rows(scene.trace(), scene.classify())]
    table = make_tables(rows)[ACTIONS.name].to_pylist()
    shown = [msgspec.to_builtins(render_action(row)) for row in table]
    return {each["type"]: each for each in shown}


def test_rotation_names_its_gasless_request() -> None:
    scene = Scene()
    telegram_requests.relay(scene, telegram_requests.write_rotation(telegram.CHANGE_KEY_INTERNAL))
    shown = show(scene)
    request, rotation = shown["gasless_request"], shown["change_wallet_key"]
    assert rotation["parent_gasless_action"] == request["action_id"]
    assert "parent_gasless_action" not in request
    parties = {"source": telegram_requests.RELAYER, "destination": telegram_requests.WALLET}
    assert request["details"] == {**parties, "value": "5000000"}
    assert rotation["details"] == {
        **parties,
        "new_public_key": f"{telegram_requests.KEY:064x}",
        "rotation_signature": f"{0x51:0128x}",
        "encrypted_old_private_key": f"{0x99:064x}",
    }


def test_rotation_from_outside_names_none() -> None:
    scene = Scene()
    body = telegram_requests.write_rotation(telegram.CHANGE_KEY_EXTERNAL)
    scene.external(telegram_requests.WALLET, body)
    rotation = show(scene)["change_wallet_key"]
    assert "parent_gasless_action" not in rotation
    assert rotation["details"]["source"] is None


NOT_IN_THE_CELL = frozenset(
    {
        "mc_block_seqno",  # the block says it
        "block_ref",  # the block says it
        "trace_id",  # the trace says it
        "trace_external_hash",
        "emulated",  # about the answer, not the transaction
        "finality",
    }
)
EMULATED_ONLY = frozenset({"description.is_tock", "description.installed"})
"""The emulator's answers write these flags for ordinary transactions as well."""

ABSENT = "absent"


def _walk(path: str, recorded: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for name in recorded.keys() | ours.keys():
            below = f"{path}.{name}" if path else name
            yield from _walk(below, recorded.get(name, ABSENT), ours.get(name, ABSENT))
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for one, other in zip(recorded, ours, strict=True):
            yield from _walk(path, one, other)
    elif recorded != ours:
        yield path, recorded, ours


def _is_excused(path: str, recorded: Any, ours: Any, *, emulated: bool) -> bool:
    """Tell whether a difference is about account states, of which the cell has only the hashes."""
    name = path.rsplit(".", 1)[-1]
    if path in NOT_IN_THE_CELL or ".decoded" in path:
        return True
    if path.startswith(("account_state_before.", "account_state_after.")):
        return name != "hash"
    if emulated and path in EMULATED_ONLY:
        return True
    # Answers of earlier years lack fields that were added since, and had an empty credit phase.
    added_since = recorded == ABSENT and name in {"extra_flags", "hash_norm"}
    empty_phase = path == "description.credit_ph" and (recorded, ours) == ({}, ABSENT)
    empty_currencies = emulated and name == "value_extra_currencies" and recorded == {}
    return added_since or empty_phase or (empty_currencies and ours is None)


def test_recorded_answers_are_equal_field_by_field(pairs: list[dict[str, Any]]) -> None:
    assert len(pairs) >= 65
    for pair in pairs:
        rendered = render_decoded(base64.b64decode(pair["boc"]), "hex")
        ours = json.loads(msgspec.json.encode(rendered))
        recorded = pair["v3"]
        # Names of opcodes and decoded bodies have tests of their own (tests/ingest/body).
        differences = [
            difference
            for difference in _walk("", recorded, ours)
            if not _is_excused(*difference, emulated=recorded["emulated"])
        ]
        assert differences == [], pair["tx_hash"]


def test_opcodes_as_numbers(pairs: list[dict[str, Any]]) -> None:
    for pair in pairs:
        rendered = render_decoded(base64.b64decode(pair["boc"]), "integer")
        recorded = pair["v3"]["in_msg"]["opcode"]
        assert rendered.in_msg is not None
        if recorded is None:
            assert rendered.in_msg.opcode is None
        else:
            assert isinstance(rendered.in_msg.opcode, int)
            assert rendered.in_msg.opcode & 0xFFFFFFFF == int(recorded, 16)


def test_the_workchain_is_that_of_a_message_or_the_masterchain() -> None:
    incoming = {"direction": "in", "source_workchain": -1, "destination_workchain": 0}
    outgoing = {"direction": "out", "source_workchain": 5, "destination_workchain": None}
    assert find_workchain([incoming, outgoing]) == 0
    assert find_workchain([outgoing]) == 5
    assert find_workchain([]) == -1
