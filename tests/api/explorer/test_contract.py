"""The contract tab: terms and members, code, and get-methods that a reader calls."""

import base64
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from tests.api.explorer.page import Page, Walker
from tonlake.api.errors import RequestInvalid
from tonlake.api.explorer.contract import (
    MAX_MEMBERS,
    list_members,
    list_methods,
    read_stack,
    split_signers,
    write_term,
)
from tonlake.api.explorer.frame import load_templates
from tonlake.api.explorer.network import decode_data
from tonlake.api.explorer.words.body import unwrap
from tonlake.api.text.encoding import decode_stack, parse_address
from tonlake.api.v3.resource.order import OrderAction
from tonlake.api.v3.route.contract import MultisigOrder, VestingInfo
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc


def show(walk: Walker, raw: str, **params: Any) -> Page:
    return walk(f"/account/{raw}", show="contract", **params)


@pytest.fixture(scope="module")
def wallet(ask: Callable[..., Any]) -> dict[str, Any]:
    """A jetton wallet with its owner and master."""
    found: dict[str, Any] = ask("jetton/wallets", limit=1)["jetton_wallets"][0]
    return found


def test_arguments_are_read_by_their_form() -> None:
    raw = "0:" + "AB" * 32
    items = read_stack(f"5, -0x10 {raw} cell:te6ccgEBAQEAAgAAAA==")
    assert items[:2] == [{"type": "num", "value": "5"}, {"type": "num", "value": "-0x10"}]
    number, negative, address, _cell = decode_stack(items)
    assert (number, negative) == (5, -16)
    tree = parse_boc(address.boc)
    head = tree.slice(tree.roots[0])
    assert (head.load_uint(3), head.load_int(8)) == (0b100, 0)
    assert head.load_bytes(32) == parse_address(raw).account
    for wrong in ("x", "cell:", "1.5", "0x"):
        with pytest.raises(RequestInvalid, match="not a number"):
            read_stack(wrong)


def test_the_methods_of_a_code_are_offered(
    walk: Walker, ask: Callable[..., Any], wallet: dict[str, Any]
) -> None:
    addresses = [wallet["jetton"], wallet["owner"]]
    states = ask("accountStates", address=addresses, include_boc="true")["accounts"]
    codes = [base64.b64decode(state["code_boc"]) for state in states]
    assert {"get_jetton_data", "get_wallet_address", "seqno"} <= set(list_methods(codes))
    assert list_methods([]) == []
    offered = [attrs.get("value") for _tag, attrs in show(walk, wallet["address"]).tags]
    assert "get_wallet_data" in offered


def test_a_jetton_wallet_shows_its_owner_code_and_data(
    walk: Walker, ask: Callable[..., Any], wallet: dict[str, Any]
) -> None:
    state = ask("accountStates", address=wallet["address"], include_boc="true")["accounts"][0]
    page = show(walk, wallet["address"])
    assert state["code_boc"] in page.words
    assert state["data_boc"] in page.words
    assert "SETCP 0\nDICTPUSHCONST 19 {\n  recv_internal (0): {\n" in page.words
    assert "  get_wallet_data (97026): {\n" in page.words
    assert "Jetton wallet" in page.words
    book = ask("addressBook", address=wallet["owner"])
    assert f"/account/{book[wallet['owner']]['user_friendly']}" in page.links


@pytest.mark.usefixtures("tvm")
def test_a_get_method_runs_at_a_block(walk: Walker, wallet: dict[str, Any]) -> None:
    page = show(walk, wallet["address"], method="get_wallet_data")
    asked = {"address": wallet["address"], "method": "get_wallet_data"}
    result = walk.client.post("/api/v3/runGetMethod", json=asked).json()
    shown = page.words[page.words.index("[\n") :].partition("\n]")[0] + "\n]"
    assert msgspec.json.decode(shown) == result["stack"]
    assert "exit code 0" in page.words
    master = show(
        walk,
        wallet["jetton"],
        method="get_wallet_address",
        arguments=wallet["owner"],
        block="238",
    )
    assert "after masterchain block 238" in master.words
    assert "exit code 0" in master.words
    failed = show(walk, wallet["address"], method="no_such_method")
    assert "exit code 11" in failed.words
    assert "no method" in failed.words


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"method": "seqno", "arguments": "x"}, "not a number, an address"),
        ({"method": "seqno", "block": "last"}, "seqno of a masterchain block"),
        ({"method": "seqno", "block": "999999"}, "Not run."),
    ],
)
def test_what_cannot_be_run_is_said_on_the_page(
    walk: Walker, wallet: dict[str, Any], params: dict[str, str], text: str
) -> None:
    assert text in show(walk, wallet["address"], **params).words


def test_an_account_without_code_has_the_tab(walk: Walker) -> None:
    assert "Call a get-method" in show(walk, "0:" + "EE" * 32).words


def read_terms(macro: str, terms: object) -> list[tuple[str, str]]:
    """Return names and texts of the facts that a macro of ``terms.html`` shows."""
    names = Mock(friendly=str, label=str, amount=lambda amount, _jetton: f"{amount} of it")
    shown = getattr(load_templates().get_template("terms.html").module, macro)(terms, names)
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", str(shown))
    return [(name, re.sub(r"<.*?>", "", text)) for name, text in found]


def test_terms_are_words() -> None:
    raw = "0:" + "AB" * 32
    assert write_term("full_price", "25500000000") == ("Full price", "25.5 TON", ())
    assert write_term("is_complete", True) == ("Is complete", "yes", ())  # noqa: FBT003
    assert write_term("royalty_address", raw) == ("Royalty address", "", (raw,))
    assert write_term("end_time", "1700000000") == ("End time", "2023-11-14 22:13:20", ())
    assert write_term("last_member", None) == ("Last member", "unknown", ())


def test_a_schedule_is_dates() -> None:
    info = VestingInfo("0:A", 0, 1000, 100, 300, None, None, "5000000000", [])
    assert read_terms("vesting", {"one": info}) == [
        *(("Total", "5 TON"), ("Owner", "none"), ("Sender", "none"), ("Whitelist", "empty")),
        ("Begins", "1970-01-01 00:00:00"),
        ("Nothing is unlocked before", "1970-01-01 00:05:00"),
        *(("Unlocks", "in 10 equal parts"), ("Ends", "1970-01-01 00:16:40")),
    ]


def test_members_of_pools_are_listed() -> None:
    members = {"count": 1200, "members": [("5 TON", "0:AB")]}
    config = {"validator_address": "CD", "max_nominators_count": "40"}
    pool = {"config": config, "validator_amount": "9 TON", "stake_amount_sent": "0 TON"}
    holder = {"balance": "7", "owner": "0:AB"}
    assert read_terms("whales", members) == [("Members", "1,200"), ("Member", "5 TON 0:AB")]
    assert read_terms("nominators", members | {"pool": pool}) == [
        *(("Validator", " -1:CD"), ("Stake of the validator", "9 TON")),
        *(("Sent to the elector", "0 TON"), ("Members", "1,200 of 40"), ("Member", "5 TON 0:AB")),
    ]
    assert read_terms("liquid", {"master": "0:EF", "holders": [holder]}) == [
        *(("Members hold the jetton", " 0:EF"), ("Member", "7 of it 0:AB")),
    ]
    for macro in ("whales", "nominators", "liquid"):
        assert read_terms(macro, "unknown: why") == [("Members", "unknown: why")]


def test_an_order_says_who_approved_it_and_what_it_does() -> None:
    fields: dict[str, Any] = dict.fromkeys(MultisigOrder.__struct_fields__)
    signers = [f"0:{number:064X}" for number in range(3)]
    sending = OrderAction(
        parsed=True,
        parsed_body_type="ton_transfer",
        parsed_body={"comment": "rent"},
        destination="0:AB",
        value="700000000",
    )
    change = OrderAction(parsed=True, parsed_body_type="multisig_update_params")
    fields |= {"signers": signers, "approvals_mask": "5", "actions": [sending, change]}
    order = MultisigOrder(**(fields | {"order_seqno": "8", "threshold": 2, "expiration_date": 60}))
    assert read_terms("order", {"one": order, "signers": split_signers(order)}) == [
        ("Multisig", "none"),
        ("Order 8", "open, 0 of 2 approvals, expires 1970-01-01 00:01:00"),
        *(("Approved by", f" {signers[0]} {signers[2]}"), ("Not approved by", f" {signers[1]}")),
        ("Action 1", "ton transfer “rent”, 0.7 TON, to 0:AB"),
        ("Action 2", "multisig update params"),
    ]


@pytest.mark.parametrize(
    ("operation", "items", "page"),
    [
        ("jetton/masters", "jetton_masters", "jetton"),
        ("nft/items", "nft_items", "nft"),
        ("nft/collections", "nft_collections", "nft"),
    ],
)
def test_accounts_of_tokens_lead_to_their_pages(
    walk: Walker, ask: Callable[..., Any], operation: str, items: str, page: str
) -> None:
    answer = ask(operation, limit=3)
    for each in answer[items]:
        friendly = answer["address_book"][each["address"]]["user_friendly"]
        assert f"/{page}/{friendly}" in show(walk, each["address"]).links


TON = 10**9


def make_members(*stakes: tuple[int, int, int, int]) -> bytes:
    """Return members by account 1, 2 and so on: stake, and what waits, in nanoton."""
    tree = CellTree()

    def store(builder: CellBuilder, at: int) -> object:
        stake, withdraw, deposit, ready = stakes[at]
        builder.store_int(-7, 128).store_coins(stake).store_coins(withdraw).store_bit(0)
        return builder.store_coins(deposit).store_coins(ready)

    entries = [(at + 1, at) for at in range(len(stakes))]
    return serialize_boc(tree, [build_hashmap(tree, entries, 256, store)])


def test_members_of_a_whales_pool() -> None:
    stakes = (5 * TON, 0, 0, 0), (TON, TON, 2 * TON, 1)
    found: Any = decode_data("WhalesMembers", make_members(*stakes))
    waiting = {"pending_deposit": "pending", "withdraw": "ready"}
    assert list_members(unwrap(found)["members"].items(), waiting) == [
        ("5 TON", "0:" + "0" * 63 + "1"),
        ("1 TON, 2 TON pending, 0.000000001 TON ready", "0:" + "0" * 63 + "2"),
    ]
    found = decode_data("WhalesMembers", make_members(*[(TON, 0, 0, 0)] * (MAX_MEMBERS + 5)))
    assert len(list_members(unwrap(found)["members"].items(), {})) == MAX_MEMBERS
    assert list_members([("ab", {"amount": "0 TON"})], {}) == [("0 TON", "0:AB")]
    builder = CellBuilder().store_uint(0, 64)
    assert decode_data("WhalesMembers", serialize_boc(builder.tree, [builder.end()])) is None
