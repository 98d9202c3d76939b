"""Operations about transactions, compared with the demo node's lite server."""

import base64
from typing import Any

import pytest

from tests.api.v3.conftest import Asker, Facts

COLLECTOR, CONFIG = "-1:" + "3" * 64, "-1:" + "5" * 64


def _hashes(answer: dict[str, Any]) -> list[str]:
    return [tx["hash"] for tx in answer["transactions"]]


def test_every_transaction_equals_the_lite_server_s(ask: Asker, facts: Facts) -> None:
    found = ask.all("transactions", sort="asc")
    assert [tx["hash"] for tx in found] == facts.transaction_hashes()
    for tx, fact in zip(found, facts.transactions, strict=True):
        assert tx["account"] == fact["address"]
        assert (tx["lt"], tx["now"]) == (str(fact["lt"]), fact["now"])
        assert tx["mc_block_seqno"] == fact["mc_seqno"]
        assert tx["block_ref"]["seqno"] == fact["block_seqno"]
        assert (tx["prev_trans_hash"], tx["prev_trans_lt"]) == (
            fact["prev_trans_hash"],
            str(fact["prev_trans_lt"]),
        )
        assert tx["total_fees"] == str(fact["total_fees"])
        assert (tx["in_msg"] and tx["in_msg"]["hash"]) == fact["in_msg_hash"]
        assert [message["hash"] for message in tx["out_msgs"]] == fact["out_msg_hashes"]
        assert tx["description"]["type"] == fact["descr"].replace("tick_or_tock", "tick_tock")
        assert (tx["emulated"], tx["finality"]) == (False, "finalized")
        assert "trace_external_hash" not in tx


def test_states_around_a_transaction_join_up(ask: Asker, facts: Facts) -> None:
    """The state after one transaction of an account is the state before its next."""
    after: dict[str, dict[str, Any]] = {}
    unknown = 0
    for tx in ask.all("transactions", sort="asc"):
        known = after.get(tx["account"])
        assert known is None or known == tx["account_state_before"]
        after[tx["account"]] = tx["account_state_after"]
        unknown += tx["account_state_after"]["balance"] is None
    balances = {fact["address"].upper(): fact for fact in facts.accounts}
    for account, state in after.items():
        fact = balances[account]
        assert state["balance"] == fact["balance"]
        assert state["account_status"] == fact["status"]
        assert state["extra_currencies"] == {}
    # Only the last state of an account in a block exists anywhere.
    kept = {(row["address"], row["shard"], row["block_seqno"]) for row in facts.transactions}
    assert unknown == len(facts.transactions) - len(kept)


def test_the_address_book_holds_every_address(ask: Asker) -> None:
    answer = ask("transactions", limit=200)
    wanted = set()
    for tx in answer["transactions"]:
        wanted.add(tx["account"])
        wanted |= {message["destination"] for message in tx["out_msgs"]}
        if tx["in_msg"]:
            wanted.add(tx["in_msg"]["source"])
    assert set(answer["address_book"]) == wanted - {None}


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"workchain": 0}, lambda row: row["workchain"] == 0),
        (
            {"workchain": -1, "seqno": 7},
            lambda row: (row["workchain"], row["block_seqno"]) == (-1, 7),
        ),
        ({"shard": "4000000000000000"}, lambda row: row["shard"] == 1 << 62),
        ({"mc_seqno": 120}, lambda row: row["mc_seqno"] == 120),
        ({"account": CONFIG}, lambda row: row["address"] == CONFIG),
        (
            {"account": CONFIG, "mc_seqno": 9},
            lambda row: (row["address"], row["mc_seqno"]) == (CONFIG, 9),
        ),
        ({"account": [CONFIG, COLLECTOR]}, lambda row: row["address"] in (CONFIG, COLLECTOR)),
        ({"account": f"{CONFIG},{COLLECTOR}"}, lambda row: row["address"] in (CONFIG, COLLECTOR)),
        (
            {"exclude_account": [CONFIG, COLLECTOR]},
            lambda row: row["address"] not in (CONFIG, COLLECTOR),
        ),
        (
            {"account": [CONFIG, COLLECTOR], "exclude_account": CONFIG},
            lambda row: row["address"] == COLLECTOR,
        ),
        ({"lt": 205000001}, lambda row: row["lt"] == 205000001),
        (
            {"lt": 205000001, "exclude_account": CONFIG},
            lambda row: row["lt"] == 205000001 and row["address"] != CONFIG,
        ),
        (
            {"start_utime": 1795238540, "end_utime": 1795238550},
            lambda row: 1795238540 <= row["now"] <= 1795238550,
        ),
        (
            {"start_lt": 20000001, "end_lt": 29000001},
            lambda row: 20000001 <= row["lt"] <= 29000001,
        ),
        (
            {"account": CONFIG, "start_lt": 20000001, "end_utime": 1795234700},
            lambda row: (
                row["address"] == CONFIG and row["lt"] >= 20000001 and row["now"] <= 1795234700
            ),
        ),
        ({"account": ""}, lambda _row: True),
    ],
)
@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_filters(ask: Asker, facts: Facts, params: dict[str, Any], match: Any, sort: str) -> None:
    found = [tx["hash"] for tx in ask.all("transactions", sort=sort, **params)]
    rows = [row for row in facts.transactions if match(row)]
    sign = 1 if sort == "asc" else -1
    timed = "start_utime" in params or "end_utime" in params
    if sort == "desc" and "lt" in params:
        rows.reverse()  # From ascending lt, then account, to the order of accounts asked for.
        assert found == [row["hash"] for row in rows]
        return
    rows.sort(
        key=lambda row: (
            sign * row["now"] if timed else 0,
            sign * row["lt"],
            row["workchain"],
            row["account"],
        )
    )
    assert found == [row["hash"] for row in rows]
    assert found


@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_aborted_transactions(ask: Asker, sort: str) -> None:
    times = {"start_utime": 1795238000, "end_utime": 1795239000}
    everything = ask.all("transactions", sort=sort, **times)
    for wanted in (True, False):
        found = ask.all("transactions", sort=sort, aborted=str(wanted), **times)
        assert found == [
            tx for tx in everything if tx["description"].get("aborted", False) is wanted
        ]
        assert found
        # Of no span of time, and so by logical time alone.
        whole = {tx["hash"] for tx in ask.all("transactions", sort=sort, aborted=str(wanted))}
        assert whole >= {tx["hash"] for tx in found}


def test_one_account_in_every_form(ask: Asker, facts: Facts) -> None:
    fact = facts.contract("wallet_v4r2")
    raw = fact["address"]
    book = ask("addressBook", address=raw)
    friendly = book[raw]["user_friendly"]
    answers = [
        _hashes(ask("transactions", account=form, limit=1000, sort="asc"))
        for form in (raw, raw.upper(), friendly, friendly.translate(str.maketrans("-_", "+/")))
    ]
    assert answers[0]
    assert all(answer == facts.transaction_hashes(address=raw.upper()) for answer in answers)


def test_transactions_by_hash(ask: Asker, facts: Facts) -> None:
    rows = facts.transactions[5:500:100]
    wanted = sorted((row["hash"] for row in rows), key=base64.b64decode)
    forms = [base64.b64decode(text).hex() for text in wanted]
    assert _hashes(ask("transactions", hash=wanted, sort="asc")) == wanted
    newest_first = wanted[::-1]
    assert (
        _hashes(ask("transactions", hash=",".join(forms), limit=2, offset=1)) == newest_first[1:3]
    )
    address = rows[-1]["address"]
    of_account = [row["hash"] for row in rows if row["address"] == address]
    assert sorted(_hashes(ask("transactions", hash=forms, account=address))) == sorted(of_account)
    assert _hashes(ask("transactions", hash=[*forms, forms[0]], limit=1000)) == newest_first
    assert ask("transactions", hash="0" * 64) == {"transactions": [], "address_book": {}}
    by_block = ask("transactions", hash=wanted, mc_seqno=rows[0]["mc_seqno"])
    assert rows[0]["hash"] in _hashes(by_block)


def test_transactions_of_a_masterchain_block(ask: Asker, facts: Facts) -> None:
    for seqno in (1, 111, 150):
        answer = ask("transactionsByMasterchainBlock", seqno=seqno, limit=1000, sort="asc")
        assert _hashes(answer) == facts.transaction_hashes(mc_seqno=seqno)
    assert ask.refused("transactionsByMasterchainBlock", seqno=500) == (
        404,
        "masterchain block 500 not found; this lake covers 1..238",
    )
    assert ask.refused("transactionsByMasterchainBlock")[0] == 404


def test_an_account_without_transactions_is_an_empty_list(ask: Asker) -> None:
    assert ask("transactions", account="0:" + "1" * 64) == {"transactions": [], "address_book": {}}


def test_transactions_by_message(ask: Asker, facts: Facts) -> None:
    fact = next(
        row
        for row in facts.transactions
        if row.get("in_msg_type") == "int" and row["workchain"] == 0
    )
    found = ask("transactionsByMessage", msg_hash=fact["in_msg_hash"])["transactions"]
    consumer = [tx for tx in found if tx["in_msg"]["hash"] == fact["in_msg_hash"]]
    producer = [tx for tx in found if tx not in consumer]
    assert [tx["hash"] for tx in consumer] == [fact["hash"]]
    assert all(
        fact["in_msg_hash"] in {message["hash"] for message in tx["out_msgs"]} for tx in producer
    )
    message = consumer[0]["in_msg"]
    for direction, side in (("in", consumer), ("out", producer)):
        assert (
            ask("transactionsByMessage", msg_hash=message["hash"], direction=direction)[
                "transactions"
            ]
            == side
        )
    by_body = ask("transactionsByMessage", body_hash=message["message_content"]["hash"], limit=1000)
    assert fact["hash"] in _hashes(by_body)
    narrowed = ask(
        "transactionsByMessage",
        body_hash=message["message_content"]["hash"],
        source=message["source"],
        destination=message["destination"],
        limit=1000,
    )
    assert set(_hashes(narrowed)) >= set(_hashes({"transactions": found}))


def test_an_opcode_alone_means_messages_consumed(ask: Asker, facts: Facts) -> None:
    found = ask("transactionsByMessage", opcode="0x0f8a7ea5", limit=1000)["transactions"]
    assert found
    assert len({tx["hash"] for tx in found}) == len(found)
    assert {tx["in_msg"]["opcode"] for tx in found} == {"0x0f8a7ea5"}
    both = {
        direction: _hashes(
            ask("transactionsByMessage", opcode="0x0f8a7ea5", direction=direction, limit=1000)
        )
        for direction in ("in", "out")
    }
    assert both["in"] == [tx["hash"] for tx in found]
    assert set(both["out"]).isdisjoint(both["in"])
    assert len(facts.transactions) > len(found)


def test_an_external_message_by_its_normal_form(ask: Asker) -> None:
    messages = ask("messages", only_externals=True, limit=100)["messages"]
    message = next(item for item in messages if "hash_norm" in item)
    both = {"only_externals": True, "exclude_externals": True}
    assert not ask("messages", msg_hash=message["hash"], **both)["messages"]
    by_hash = ask("transactionsByMessage", msg_hash=message["hash"])
    assert by_hash == ask("transactionsByMessage", msg_hash=message["hash_norm"])
    assert message["in_msg_tx_hash"] in _hashes(by_hash)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "at least one of msg_hash, body_hash, opcode should be specified"),
        ({"msg_hash": ""}, "at least one of msg_hash, body_hash, opcode should be specified"),
        ({"opcode": "1", "direction": "up"}, "direction should be one of: in, out"),
        ({"opcode": "zz"}, 'schema: error converting value for "opcode"'),
        ({"opcode": "1", "source": "null"}, 'schema: error converting value for "source"'),
    ],
)
def test_errors_by_message(ask: Asker, params: dict[str, Any], text: str) -> None:
    assert ask.refused("transactionsByMessage", **params) == (422, text)


def test_adjacent_transactions(ask: Asker, facts: Facts) -> None:
    made = {message: row["hash"] for row in facts.transactions for message in row["out_msg_hashes"]}
    fact = next(
        row
        for row in facts.transactions
        if row["in_msg_hash"] in made and len(row["out_msg_hashes"]) > 1
    )
    consumed = {row["in_msg_hash"]: row["hash"] for row in facts.transactions}
    parent = [made[fact["in_msg_hash"]]]
    children = [consumed[message] for message in fact["out_msg_hashes"] if message in consumed]
    assert _hashes(ask("adjacentTransactions", hash=fact["hash"], direction="in")) == parent
    after = ask("adjacentTransactions", hash=fact["hash"], direction="out")["transactions"]
    assert sorted(tx["hash"] for tx in after) == sorted(children)
    assert [int(tx["lt"]) for tx in after] == sorted(int(tx["lt"]) for tx in after)
    for params in ({}, {"direction": "sideways"}):
        both = _hashes(ask("adjacentTransactions", hash=fact["hash"], **params))
        assert sorted(both) == sorted(parent + children)


def test_nothing_adjacent(ask: Asker, facts: Facts) -> None:
    tick = next(row for row in facts.transactions if row["descr"] == "tick_or_tock")
    for wanted in (tick["hash"], "0" * 64):
        assert ask.refused("adjacentTransactions", hash=wanted) == (
            404,
            "adjacent transactions not found",
        )
    assert ask.refused("adjacentTransactions") == (422, "hash is required")


def test_no_address_book_on_request(ask: Asker) -> None:
    url = "/api/v3/transactions?limit=3"
    full = ask.client.get(url).json()
    assert full["address_book"]
    for headers, suffix in (({"X-No-Address-Book": "true"}, ""), ({}, "&x_no_address_book=1")):
        answer = ask.client.get(url + suffix, headers=headers).json()
        assert answer == {**full, "address_book": {}}
    assert ask.client.get(url, headers={"X-No-Address-Book": "maybe"}).json() == full
