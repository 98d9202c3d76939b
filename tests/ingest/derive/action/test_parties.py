"""Requests of genuine networks, read by another library, beside the actions that they became."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytoniq_core import Address, Cell, MessageAny

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

Row = dict[str, Any]

JETTON_TRANSFER, JETTON_BURN, INTERNAL_TRANSFER = 0x0F8A7EA5, 0x595F07BC, 0x178D4519
NFT_TRANSFER, CHANGE_RECORD = 0x5FCC3D14, 0x4EB1F0F9
NEW_ORDER, APPROVE = 0xF718510F, 0xA762230F
ADD_WHITELIST, SEND_MESSAGE = 0x7258A69B, 0xA7733ACD


class Chain:
    """Actions and messages of a lake, and the activities on its network."""

    def __init__(self, lake_dir: Path, facts: Path) -> None:
        self._connection = connect(open_snapshot(lake_dir))
        self._actions: dict[bytes, list[Row]] = defaultdict(list)
        for row in self._read("select * from actions"):
            self._actions[row["trace_id"]].append(row)
        self._traces = {
            row["hash"]: row["trace_id"]
            for row in self._read("select hash, trace_id from transaction_traces")
        }
        self._messages = {
            row["tx_hash"]: row
            for row in self._read(
                "with bodies as (select msg_hash, any_value(body) as body from messages group by 1)"
                " select tx_hash, tx_workchain, tx_account, value, opcode, bodies.body"
                " from messages join bodies using (msg_hash) where direction = 'in'"
            )
        }
        listed = json.loads((facts / "expected.json").read_bytes())["activities"]
        self.activities = [each for each in listed if each.get("found")]

    def _read(self, query: str) -> list[Row]:
        rows: list[Row] = self._connection.sql(query).to_arrow_table().to_pylist()
        return rows

    def find(self, activity: Row, kind: str) -> list[Row]:
        """Return the actions of a type in an activity's trace."""
        trace_id = self._traces[bytes.fromhex(activity["trace"][0]["hash"])]
        return [row for row in self._actions[trace_id] if row["type"] == kind]

    def list_messages(self, activity: Row) -> list[Row]:
        """Return the messages that the transactions of a trace consumed, if the facts list them."""
        hashes = (bytes.fromhex(each["hash"]) for each in activity["trace"])
        return [self._messages[each] for each in hashes]


def open_body(message: Row) -> Any:
    """Return a body after its opcode."""
    body = Cell.one_from_boc(message["body"]).begin_parse()
    body.load_uint(32)
    return body


def name_account(message: Row) -> str:
    return f"{message['tx_workchain']}:{message['tx_account'].hex().upper()}"


def name_address(address: Address | None) -> str | None:
    return None if address is None else f"{address.wc}:{address.hash_part.hex().upper()}"


def check_jetton_transfer(row: Row, request: Row) -> None:
    body = open_body(request)
    query_id, amount, target = body.load_uint(64), body.load_coins(), body.load_address()
    details = json.loads(row["details"])["jetton_transfer_data"]
    assert (details["query_id"], int(row["amount"])) == (query_id, amount)
    assert (row["destination"], row["source_secondary"]) == (
        name_address(target),
        name_account(request),
    )


def check_jetton_burn(row: Row, request: Row) -> None:
    body = open_body(request)
    body.load_uint(64)
    assert int(row["amount"]) == body.load_coins()
    assert row["source_secondary"] == name_account(request)


def check_nft_transfer(row: Row, request: Row) -> None:
    body = open_body(request)
    body.load_uint(64)
    assert (row["destination"], row["asset_secondary"]) == (
        name_address(body.load_address()),
        name_account(request),
    )


def check_bid(row: Row, request: Row) -> None:
    assert int(row["value"]) == request["value"]
    assert row["destination"] == row["asset_secondary"] == name_account(request)


def check_record(row: Row, request: Row) -> None:
    body = open_body(request)
    body.load_uint(64)
    (details,) = json.loads(row["details"]).values()
    assert details["key"] == body.load_bytes(32).hex()
    assert row["destination"] == name_account(request)


def check_new_order(row: Row, request: Row) -> None:
    body = open_body(request)
    (details,) = json.loads(row["details"]).values()
    wanted = {"query_id": body.load_uint(64), "order_seqno": body.load_uint(256)}
    wanted |= {"is_created_by_signer": body.load_bool(), "creator_index": body.load_uint(8)}
    wanted["expiration_date"] = body.load_uint(48)
    assert details | wanted == details
    assert Cell.one_from_boc(details["order_boc"]).hash == body.load_ref().hash
    assert row["destination"] == name_account(request)


def check_approval(row: Row, request: Row) -> None:
    body = open_body(request)
    body.load_uint(64)
    assert json.loads(row["details"])["multisig_approve_data"] == {
        "signer_index": body.load_uint(8),
        "exit_code": 0,
    }
    assert row["destination"] == name_account(request)


def check_whitelist(row: Row, request: Row) -> None:
    body = open_body(request)
    query_id, added = body.load_uint(64), [name_address(body.load_address())]
    while body.remaining_refs:
        body = body.load_ref().begin_parse()
        added.append(name_address(body.load_address()))
    data = {"query_id": query_id, "accounts_added": added}
    assert json.loads(row["details"])["vesting_add_whitelist_data"] == data
    assert row["destination"] == name_account(request)


def check_vesting_message(row: Row, request: Row) -> None:
    body = open_body(request)
    query_id, _mode, inner = body.load_uint(64), body.load_uint(8), body.load_ref()
    message = MessageAny.deserialize(inner.begin_parse())
    assert json.loads(row["details"])["vesting_send_message_data"]["query_id"] == query_id
    assert row["destination"] == name_account(request)
    assert row["destination_secondary"] == name_address(message.info.dest)
    assert int(row["amount"]) == message.info.value.grams


CHECKS: dict[int | None, tuple[tuple[str, ...], Callable[[Row, Row], None]]] = {
    JETTON_TRANSFER: (("jetton_transfer",), check_jetton_transfer),
    JETTON_BURN: (("jetton_burn",), check_jetton_burn),
    NFT_TRANSFER: (("nft_transfer",), check_nft_transfer),
    CHANGE_RECORD: (("change_dns", "delete_dns"), check_record),
    NEW_ORDER: (("multisig_create_order",), check_new_order),
    APPROVE: (("multisig_approve",), check_approval),
    ADD_WHITELIST: (("vesting_add_whitelist",), check_whitelist),
    SEND_MESSAGE: (("vesting_send_message",), check_vesting_message),
}
"""By opcode of a wallet's request to a contract: the resulting actions, and their check."""

BOUNCED = {"multisig_approve_rejected", "vesting_send_bad_mode"}
"""Kinds at which the contract throws, and which the rules call a failed call."""


def check_refusal(chain: Chain, activity: Row, request: Row) -> None:
    """A transfer rejected by a jetton wallet is a failed call: no jettons moved."""
    (call,) = (row for row in chain.find(activity, "call_contract") if not row["success"])
    assert (call["source"], call["destination"]) == (
        activity["wallet"].upper(),
        name_account(request),
    )


def check_activity(chain: Chain, activity: Row) -> str | None:
    """Compare an activity with its action; return the action's type, None if no rule covers it."""
    messages = chain.list_messages(activity)
    if len(messages) < 2 or activity["kind"] in BOUNCED:
        return None
    request = messages[1]
    opcode = None if request["opcode"] is None else request["opcode"] % 2**32
    kinds, check = CHECKS.get(opcode, ((), check_bid))
    if activity["kind"] == "dns_bid_too_low":
        return None
    if activity["kind"] == "dns_bid":
        kinds = ("auction_bid",)
    rows = [row for kind in kinds for row in chain.find(activity, kind)]
    if activity["kind"] == "dns_bid" and not rows:
        # As with TON Center, a bid is known by the refund of the one before it, of .ton domains.
        return "plain_bid"
    if not kinds or (opcode is None and check is not check_bid):
        return None
    if not rows and opcode == JETTON_TRANSFER:
        check_refusal(chain, activity, request)
        return "refused"
    mine = [row for row in rows if row["source"] == activity["wallet"].upper()]
    assert mine, (activity["kind"], rows)
    check(mine[0], request)
    columns = {"master": "asset", "order": "destination", "item": "asset_secondary"}
    if "multisig" in activity:
        columns = {"multisig": "destination", "order": "destination_secondary"}
    for name in columns.keys() & activity.keys():
        assert mine[0][columns[name]] == activity[name].upper()
    return str(mine[0]["type"])


ALONE = {
    "nft_mint": "nft_mint",
    "nft_batch_mint": "nft_mint",
    "nft_get_static_data": "nft_discovery",
}
"""Actions of kinds of activities whose requests have no check."""

REFUSED = {
    "nft_transfer_not_owner": "nft_transfer",
    "dns_bid_too_low": "ton_transfer",
    "dns_set_record_not_owner": "change_dns",
}
"""Actions that failed, by kinds of activities rejected by a contract."""


def check_kinds(chain: Chain) -> None:
    """Activities without a request to compare have the action of their kind as well."""
    for activity in chain.activities:
        kind = (ALONE | REFUSED).get(activity["kind"], "")
        rows = chain.find(activity, kind)
        assert rows or not kind, activity
        assert activity["wallet"].upper() in {row["source"] for row in rows} or kind in {
            "",
            "nft_mint",
        }
        assert activity["kind"] not in REFUSED or not any(row["success"] for row in rows)


def check_mints(chain: Chain) -> int:
    """Every mint has the amount and the wallet of the message that delivers the jettons."""
    count = 0
    for activity in chain.activities:
        if activity["kind"] not in {"jetton_mint", "stablecoin_mint"}:
            continue
        brought = [
            message
            for message in chain.list_messages(activity)
            if message["opcode"] is not None and message["opcode"] % 2**32 == INTERNAL_TRANSFER
        ]
        rows = chain.find(activity, "jetton_mint")
        minted = {
            (row["destination_secondary"], int(row["amount"]))
            for row in rows
            if row["destination_secondary"] is not None
        }
        wanted = set()
        for message in brought:
            body = open_body(message)
            body.load_uint(64)
            wanted.add((name_account(message), body.load_coins()))
        assert minted == wanted, activity
        if "master" in activity:
            assert {row["asset"] for row in rows} == {activity["master"].upper()}
        count += len(minted)
    return count


def test_parties_and_amounts(demo_lake: Path, demo_facts: Path) -> None:
    chain = Chain(demo_lake, demo_facts)
    seen = Counter(check_activity(chain, activity) for activity in chain.activities)
    assert (seen["jetton_transfer"], seen["refused"]) == (56, 1)
    assert {"jetton_burn", "nft_transfer", "auction_bid", "change_dns"} <= seen.keys()
    assert "plain_bid" not in seen
    assert check_mints(chain) > 4
    check_kinds(chain)
    kinds = {activity["kind"] for activity in chain.activities}
    assert (ALONE | REFUSED).keys() <= kinds


@pytest.mark.long
def test_parties_and_amounts_of_a_larger_network(
    shared: Path, ingest_network: Callable[[str], Path]
) -> None:
    """Includes multisig wallets, vesting and sales; approvals by comment are payments."""
    chain = Chain(ingest_network("node/localnet-db"), shared / "node")
    seen = Counter(check_activity(chain, activity) for activity in chain.activities)
    assert (seen["multisig_create_order"], seen["multisig_approve"]) == (15, 12)
    assert (seen["vesting_add_whitelist"], seen["vesting_send_message"]) == (3, 9)
    assert (seen["jetton_transfer"], seen["refused"]) == (340, 111)
    assert (seen["auction_bid"], seen["plain_bid"]) == (12, 18)
    assert check_mints(chain) > 10
    executed = 0
    for activity in chain.activities:
        if activity["kind"] == "multisig_approve":
            for row in chain.find(activity, "multisig_execute"):
                assert row["source"] == activity["order"].upper()
                executed += 1
        elif activity["kind"] in BOUNCED:
            calls = chain.find(activity, "call_contract")
            assert any(not row["success"] for row in calls)
            assert not chain.find(activity, "multisig_approve")
            assert not chain.find(activity, "vesting_send_message")
        elif activity["kind"] == "nft_sale_buy":
            (row,) = chain.find(activity, "nft_transfer")  # bought by an opcode, as served
            assert row["destination"] == activity["buyer"].upper()
    assert executed == 12
