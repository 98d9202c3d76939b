"""The contract tab: terms and members, code, and get-methods that a reader calls."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.api.explorer.page import Page, Walker
from tonlake.api.chain.configuration import decode_data
from tonlake.api.errors import RequestInvalid
from tonlake.api.explorer.contract import (
    MAX_MEMBERS,
    Fact,
    _list_approvals,
    _write_action,
    _write_schedule,
    _write_term,
    list_members,
    list_methods,
    read_stack,
)
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


def test_code_and_data_are_those_of_the_api(
    walk: Walker, ask: Callable[..., Any], wallet: dict[str, Any]
) -> None:
    state = ask("accountStates", address=wallet["address"], include_boc="true")["accounts"][0]
    page = show(walk, wallet["address"])
    assert state["code_boc"] in page.words
    assert state["data_boc"] in page.words


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


def test_terms_are_words() -> None:
    raw = "0:" + "AB" * 32
    assert _write_term("full_price", "25500000000") == Fact("Full price", "25.5 TON")
    assert _write_term("is_complete", True) == Fact("Is complete", "yes")  # noqa: FBT003
    assert _write_term("royalty_address", raw) == Fact("Royalty address", accounts=(raw,))
    assert _write_term("end_time", "1700000000") == Fact("End time", "2023-11-14 22:13:20")
    assert _write_term("last_member", None) == Fact("Last member", "unknown")


def test_a_schedule_is_dates() -> None:
    info = VestingInfo("0:A", 0, 1000, 100, 300, None, None, "5000000000", [])
    facts = {fact.name: fact.text for fact in _write_schedule(info)}
    assert facts["Total"] == "5 TON"
    assert facts["Unlocks"] == "in 10 equal parts"
    assert facts["Nothing is unlocked before"] == "1970-01-01 00:05:00"
    assert facts["Ends"] == "1970-01-01 00:16:40"


def test_code_is_shown_as_instructions(walk: Walker, wallet: dict[str, Any]) -> None:
    page = show(walk, wallet["address"])
    assert "SETCP 0\nDICTPUSHCONST 19 {\n  recv_internal (0): {\n" in page.words
    assert "  get_wallet_data (97026): {\n" in page.words


def test_an_order_says_who_approved_it_by_the_bits_of_its_mask() -> None:
    fields: dict[str, Any] = dict.fromkeys(MultisigOrder.__struct_fields__)
    signers = [f"0:{number:064X}" for number in range(3)]
    order = MultisigOrder(**(fields | {"signers": signers, "approvals_mask": "5"}))
    approved, waiting = _list_approvals(order)
    assert approved == Fact("Approved by", accounts=(signers[0], signers[2]))
    assert waiting == Fact("Not approved by", accounts=(signers[1],))


def test_an_order_says_what_it_does() -> None:
    to = "0:" + "AB" * 32
    sending = OrderAction(
        parsed=True,
        parsed_body_type="ton_transfer",
        parsed_body={"comment": "rent"},
        destination=to,
        value="700000000",
    )
    assert _write_action(1, sending) == Fact("Action 1", "ton transfer “rent”, 0.7 TON, to", (to,))
    change = OrderAction(parsed=True, parsed_body_type="multisig_update_params")
    assert _write_action(2, change) == Fact("Action 2", "multisig update params")


def test_a_jetton_wallet_shows_its_owner(
    walk: Walker, ask: Callable[..., Any], wallet: dict[str, Any]
) -> None:
    page = show(walk, wallet["address"])
    assert "Jetton wallet" in page.words
    book = ask("addressBook", address=wallet["owner"])
    assert f"/account/{book[wallet['owner']]['user_friendly']}" in page.links


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
        Fact("Member", "5 TON", ("0:" + "0" * 63 + "1",)),
        Fact("Member", "1 TON, 2 TON pending, 0.000000001 TON ready", ("0:" + "0" * 63 + "2",)),
    ]


def test_other_data_has_no_members() -> None:
    builder = CellBuilder().store_uint(0, 64)
    assert decode_data("WhalesMembers", serialize_boc(builder.tree, [builder.end()])) is None


def test_many_members_are_cut() -> None:
    found: Any = decode_data("WhalesMembers", make_members(*[(TON, 0, 0, 0)] * (MAX_MEMBERS + 5)))
    assert len(list_members(unwrap(found)["members"].items(), {})) == MAX_MEMBERS
    assert list_members([("ab", {"amount": "0 TON"})], {}) == [Fact("Member", "0 TON", ("0:AB",))]
