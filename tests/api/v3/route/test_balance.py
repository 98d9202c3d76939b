"""Balance changes of transactions, compared with the states around them."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytoniq_core import begin_cell

from tests.api.v3.conftest import Asker
from tests.patience import PATIENT
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.text.encoding import Address
from tonlake.api.v3.route.balance import read_jettons, sum_balances
from tonlake.lake.index.segment.declared import Record

WALLET = Address(0, bytes(32))
OWNERS = {WALLET: ("0:A", "0:B")}
BOUNCED = 0xFFFFFFFF


def _message(*words: int, amount: int = 50, **values: Any) -> dict[str, Any]:
    body = begin_cell()
    for word in words:
        body.store_uint(word, 32)
    boc = body.store_uint(7, 64).store_coins(amount).end_cell().to_boc()
    money = {"value": None, "fwd_fee": None, "ihr_fee": None}
    return {"direction": "in", "kind": "int", "body": boc, **money, **values}


def _transaction(*messages: dict[str, Any], aborted: bool = False) -> Record:
    row = {"workchain": 0, "account": bytes(32), "total_fees": 3, "aborted": aborted}
    return Record(row, list(messages), None, None)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ((0x178D4519,), 50),
        ((0x0F8A7EA5,), -50),
        ((0x595F07BC,), -50),
        ((BOUNCED, 0x178D4519), 50),
        ((BOUNCED, 0x7BDD97DE), 50),
        ((BOUNCED, 0x0F8A7EA5), 0),
        ((0x7362D09C,), 0),
        ((0,), 0),
    ],
)
def test_jettons_of_a_message(words: tuple[int, ...], change: int) -> None:
    assert read_jettons(_message(*words)) == change
    assert read_jettons(_message(*words, direction="out")) == 0
    assert read_jettons(_message(*words, kind="ext_in")) == 0


def test_bodies_that_are_cut_off_change_nothing() -> None:
    short = begin_cell().store_uint(0x0F8A7EA5, 32).end_cell().to_boc()
    assert read_jettons(_message() | {"body": short}) == 0
    assert read_jettons(_message() | {"body": None}) == 0


def test_jettons_move_only_where_the_wallet_agreed() -> None:
    message = _message(0x178D4519)
    moved = sum_balances([_transaction(message)], OWNERS)
    assert moved.jettons == {"0:A": {"0:B": "50"}}
    stuck = sum_balances([_transaction(message, aborted=True)], OWNERS)
    assert stuck.jettons == {}
    both = _transaction(message, _message(0x0F8A7EA5))
    assert sum_balances([both], OWNERS).jettons == {}


def test_fees_are_those_of_the_transaction_and_of_what_it_sends() -> None:
    received = _message(0, value=100, ihr_fee=2, fwd_fee=9)
    sent = _message(0, direction="out", value=60, ihr_fee=1, fwd_fee=4)
    found = sum_balances([_transaction(received, sent)], {})
    account = "0:" + "00" * 32
    assert found.fees == {account: 3 + 4 + 1}
    assert found.changes == {account: 102 - 60 - 8}


def test_changes_are_those_of_the_states(demo_lake: Path) -> None:
    with closing(SnapshotHolder(demo_lake, PATIENT)) as holder:
        reader = holder.reader()
        keys = reader.rows("v3/transaction_keys", limit=5000)
        records: list[Any] = list(reader.rows("v3/transactions", keys=keys))
    known = [one for one in records if one.before is not None and one.after is not None]
    for one in known:
        (change,) = sum_balances([one], {}).changes.values()
        assert change == one.after["balance"] - one.before["balance"]
    assert len(known) > 100


def test_traces_and_actions_that_are_not_there(market: Asker) -> None:
    assert market.refused("balanceChanges") == (400, "trace_id or action_id is required")
    assert market.refused("balanceChanges", trace_id="ab" * 32) == (404, "trace_id not found")
    assert market.refused("balanceChanges", action_id="ab" * 32) == (404, "action_id not found")
