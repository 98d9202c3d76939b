"""Decoded bodies: against recorded responses, and for garbage."""

import gc
from base64 import b64decode, b64encode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode_body, show, show_message
from tests.ingest.derive.body.recordings import (
    Recorded,
    in_first_form,
    read_messages,
    read_traces,
    without_address_kind,
)
from tonlake.api.v2.transaction import read_text
from tonlake.api.v3.resource.order import Fielded, read_order_body
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.action.body import Body, read_comment
from tonlake.ingest.derive.body.body import Decoded, decode_body, decode_message_body, name_opcode
from tonlake.ingest.derive.body.codec import (
    ENCRYPTED_OPCODE,
    MAX_PAYLOADS,
    TEXT_OPCODE,
    Object,
    Value,
)
from tonlake.ingest.derive.body.function import MAX_LEVELS
from tonlake.ingest.derive.body.scheme import load_scheme

EXCESS = 0xD53276DB
BOUNCE = 0xFFFFFFFF
TRANSFER = 0x0F8A7EA5

DISAGREEMENTS = {
    "not decoded": "the response predates the decoding of bodies: it has null, or no object",
    "old comment": "the response predates the key @type of text comments",
    "first form": "the oldest decoded responses have the same values in another form",
    "one pair": "responses of one broken version have one pair of the object as type and data, "
    "a different pair each time",
}
"""Why a recorded object can differ from ours."""

DISAGREEING_ANSWERS = {
    ("mtw-contractCallTraceResponse.json", "not decoded"): 3,
    ("mtw-contractCallTraceResponse.json", "old comment"): 1,
    ("mtw-dedust-usdtSwapTonTraceResponse.json", "first form"): 7,
    ("mtw-dedust-usdtSwapTonTraceResponse.json", "not decoded"): 1,
    ("mtw-editDomainRecordTraceResponse.json", "one pair"): 2,
    ("mtw-failedUsdtTransferTraceResponse.json", "not decoded"): 1,
    ("mtw-fragment-placeBidEmulateTraceResponse.json", "not decoded"): 2,
    ("mtw-getgems-transferNftEmulateTraceResponse.json", "not decoded"): 4,
    ("mtw-isExcessAccountedEmulateTraceResponse.json", "not decoded"): 1,
    ("mtw-isExcessAccountedEmulateTraceResponse.json", "old comment"): 1,
    ("mtw-nftTransferTraceResponse.json", "not decoded"): 4,
    ("mtw-stonfi-tonSwapStonTraceResponse.json", "one pair"): 11,
    ("mtw-tonTransferTraceResponse.json", "not decoded"): 1,
    ("mtw-tonTransferTraceResponse.json", "old comment"): 1,
    ("mtw-usdtTransferTraceResponse.json", "not decoded"): 5,
}
"""The recorded responses with objects that differ from ours: reason, and number of messages."""


@pytest.fixture(scope="module")
def messages(shared: Path) -> list[Recorded]:
    found = read_messages(shared)
    assert len(found) > 60
    return found


def decode(message: Recorded) -> Decoded:
    return decode_message_body(b64decode(message.body), external_in=message.external_in)


def test_names_agree_with_the_recorded_answers(messages: list[Recorded]) -> None:
    named = [message for message in messages if message.has_opcode_name]
    assert len(named) > 40
    # One broken version wrote "" for unknown.
    assert [m.hash for m in named if (m.opcode_name or None) != decode(m).name] == []


def explain(message: Recorded, ours: Decoded) -> str:
    """Return how a recorded object relates to ours, a reason in DISAGREEMENTS if it differs."""
    theirs = message.decoded
    if theirs == ours.value:
        return "equal"
    if theirs is None:
        # Versions that did not name wallets did not decode them either.
        is_old = not message.has_opcode_name or message.opcode_name == ""
        return "not decoded" if is_old else "different"
    assert ours.value is not None
    if theirs == {"type": "text_comment", "comment": ours.value.get("comment")}:
        return "old comment"
    if theirs.get("type") == ours.name and "@type" not in theirs:
        fields = in_first_form(ours.value)
        del fields["type"]
        if without_address_kind(theirs["data"]) == fields:
            return "first form"
    if set(theirs) == {"type", "data"} and ours.value.get(theirs["type"]) == theirs["data"]:
        return "one pair"
    return "different"


def test_objects_agree_with_the_recorded_answers(messages: list[Recorded]) -> None:
    found = Counter((message.file, explain(message, decode(message))) for message in messages)
    equal = sum(count for (_, reason), count in found.items() if reason == "equal")
    others = {key: count for key, count in found.items() if key[1] != "equal"}
    assert others == DISAGREEING_ANSWERS
    assert {reason for _, reason in others} == set(DISAGREEMENTS)
    assert equal >= 23


OTHER_LAYOUTS = (
    *("jetton_mint", "cocoon_charge_payload", "cocoon_grant_refund_payload"),
    *("cocoon_payout_payload", "coffee_staking_deposit", "tgbtc_burn_event"),
)
"""Names of opcodes of recorded bodies that have other layouts."""


def test_real_bodies_of_known_opcodes_are_decoded(shared: Path) -> None:
    """Of recorded main-network messages, those that no layout fits are listed with the reason."""
    missed = {
        "evaa_supply_fail": "an older version without the last reference",
        "evaa_withdraw_master": "an older version without forward_ton_amount",
        "jetton_burn_notification": "the minter's own version without response_destination",
    }
    other = "another layout: the known one would leave most of the body unread"
    missed |= dict.fromkeys(OTHER_LAYOUTS, other)
    decoded = Counter[bool]()
    for name, value in read_traces(shared, "classifier/traces", is_internal=True):
        decoded[value is not None] += 1
        assert value is not None or name in missed, name
    assert decoded[True] > 400
    assert decoded[False] < 10 + len(OTHER_LAYOUTS)


def build(*parts: tuple[int, int], rest: bytes = b"") -> tuple[CellTree, int]:
    """Build a body of numbers of given widths, and bytes behind them."""
    cell = CellBuilder()
    for value, bits in parts:
        cell.store_uint(value, bits)
    cell.store_bytes(rest)
    return cell.tree, cell.end()


def test_a_text_comment_has_a_separate_shape_in_messages() -> None:
    tree, cell = build((0, 32), rest="naïve 🙂".encode())
    assert show(tree, cell) == (
        "text_comment",
        {"@type": "text_comment", "text": "naïve 🙂"},
    )
    assert show_message(tree, cell, external_in=False) == (
        "text_comment",
        {"type": "text_comment", "@type": "text_comment", "comment": "naïve 🙂"},
    )


def test_a_comment_runs_over_many_cells() -> None:
    text = "long " * 300
    tree, cell = encode_body("text_comment", text=text)
    assert len(tree.links[cell]) == 1
    assert show(tree, cell)[1] == {"@type": "text_comment", "text": text}


def test_an_encrypted_comment_is_shown_as_hexadecimal_text() -> None:
    tree, cell = build((0x2167DA4B, 32), rest=b"\x01\xff")
    expected = {"@type": "encrypted_text_comment", "cipher_text": "01FF"}
    assert show_message(tree, cell, external_in=False)[1] == expected


def test_a_bounced_body_shows_the_original_body() -> None:
    tree, cell = build((BOUNCE, 32), (EXCESS, 32), (7, 64))
    assert show(tree, cell) == (
        "bounce",
        {"@type": "bounce", "payload": {"@type": "excess", "query_id": "7"}},
    )
    tree, cell = build((BOUNCE, 32), (EXCESS, 32), (7, 16))  # cut short: no layout fits
    value = show(tree, cell)[1]
    assert value is not None
    assert value["payload"] == "te6ccgEBAQEACAAADNUydtsABw=="


@pytest.mark.parametrize("bits", [1, 8, 31])
def test_a_body_without_opcode_is_not_decoded(bits: int) -> None:
    tree, cell = build((0, bits))
    assert show_message(tree, cell, external_in=False) == (None, None)


def test_the_empty_body_has_an_object() -> None:
    tree, cell = build()
    assert show(tree, cell) == (None, {"@type": "empty_cell"})
    assert show_message(tree, cell, external_in=True) == (None, {"@type": "empty_cell"})


@pytest.mark.parametrize("bits", [65, 128])
def test_data_after_a_layout_are_ignored(bits: int) -> None:
    tree, cell = build((EXCESS, 32), (0, bits))
    assert show(tree, cell) == ("excess", {"@type": "excess", "query_id": "0"})
    forward = CellBuilder(tree).store_uint(EXCESS, 32).store_uint(0, bits).store_ref(cell).end()
    assert show(tree, forward) == ("excess", {"@type": "excess", "query_id": "0"})


@pytest.mark.parametrize(("bits", "fits"), [(160, True), (161, False), (900, False)])
def test_a_layout_does_not_claim_a_body_of_which_it_leaves_most(bits: int, *, fits: bool) -> None:
    tree, cell = build((EXCESS, 32), (0, bits))
    found = decode_body(tree, cell)
    assert (found.name, found.own_name) == ("excess", "excess" if fits else None)
    assert (found.json is not None) is fits


def test_a_body_that_is_too_short_keeps_its_name_only() -> None:
    tree, cell = build((EXCESS, 32), (0, 63))
    assert show(tree, cell) == ("excess", None)


@pytest.mark.parametrize("bits", [3, 16])
def test_a_signed_body_must_be_used_up(bits: int) -> None:
    wallet = ((1 << 511, 512), (698983191, 32), (0, 32), (5, 32))
    tree, cell = build(*wallet)
    assert show(tree, cell)[1] is not None
    tree, cell = build(*wallet, (0, bits))
    assert show(tree, cell) == (None, None)


def store_wallet_5(inner: CellBuilder) -> CellBuilder:
    """Store a signed request of wallet v5 up to its actions."""
    inner.store_uint(0x7369676E, 32).store_uint(2147483409, 32)
    return inner.store_uint(1760463980, 32).store_uint(208, 32)


def test_a_body_that_no_layout_fits_is_freed_at_once() -> None:
    tree = CellBuilder().tree
    message = CellBuilder(tree).store_uint(1, 3).end()
    signed = CellBuilder(tree).store_uint(1 << 511, 512).store_uint(0, 96).store_uint(3, 8)
    cell = signed.store_ref(message).end()
    assert show(tree, cell) == (None, None)
    gc.collect()
    assert show(tree, cell) == (None, None)
    assert gc.collect() == 0


def test_a_request_to_wallet_5_shows_its_actions_and_extensions() -> None:
    tree = CellBuilder().tree
    out = CellBuilder(tree).end()
    for code in (b"\x01", b"\x02"):
        kept = CellBuilder(tree).store_bytes(code).end()
        node = CellBuilder(tree).store_ref(out).store_uint(0xAD4DE08E, 32)
        out = node.store_ref(kept).end()
    last = CellBuilder(tree).store_uint(4, 8).store_bit(1).end()
    second = CellBuilder(tree).store_uint(3, 8).store_uint(0, 2).store_ref(last).end()
    body = store_wallet_5(CellBuilder(tree)).store_bit(1).store_ref(out)
    body.store_bit(1).store_uint(2, 8).store_uint(0, 2).store_ref(second).store_uint(7, 512)
    name, value = show(tree, body.end())
    assert name == "w5_external_signed_request"
    none = {"@type": "addr_none"}
    request: Any = (value or {})["request"]
    assert {**request, "inner": None} == {
        "@type": "w5_signed_request",
        "wallet_id": "2147483409",
        "valid_until": "1760463980",
        "msg_seqno": "208",
        "inner": None,
        "signature": f"{7:0128X}",
    }
    actions = request["inner"]["out_actions"]["value"]["cell_reference"]
    assert (actions["@type"], actions["prev"]["@type"]) == ("out_list", "out_list")
    assert actions["prev"]["prev"] == {"@type": "out_list_empty"}
    assert request["inner"]["extended_actions"]["value"] == {
        "@type": "extended_list_action",
        "action": {"@type": "add_extension", "addr": none},
        "prev": {
            "@type": "extended_list_action",
            "action": {"@type": "delete_extension", "addr": none},
            "prev": {
                "@type": "extended_list_last",
                "action": {"@type": "set_signature_auth_allowed", "allowed": True},
            },
        },
    }


def test_a_request_of_an_extension_to_wallet_5_has_no_signature() -> None:
    tree, cell = build((0x6578746E, 32), (9, 64), (0, 2))
    nothing = {"@type": "nothing_from_maybe"}
    request = {"@type": "w5_actions_request", "out_actions": nothing, "extended_actions": nothing}
    expected = {"@type": "w5_extension_action_request", "query_id": "9", "request": request}
    assert show(tree, cell) == ("w5_extension_action_request", expected)


@pytest.mark.parametrize("external_in", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_request_to_a_telegram_wallet_lists_its_messages(
    *, count: int, external_in: bool
) -> None:
    tree, cell = encode_telegram_bulk(count, count)
    name, value = show_message(tree, cell, external_in=external_in)
    request: Any = (value or {})["request"]
    assert name is None
    assert request["@type"] == "tg_wallet_send_bulk_internal"
    assert request["messages_count"] == str(count)
    assert [item["send_mode"] for item in request["messages"]] == ["3"] * count
    assert {item["@type"] for item in request["messages"]} <= {"tg_wallet_message_to_send"}


def test_a_wrong_count_of_messages_leaves_them_raw() -> None:
    tree, cell = encode_telegram_bulk(2, 3)
    request: Any = (show(tree, cell)[1] or {})["request"]
    assert request["messages_count"] == "3"
    assert isinstance(request["first_chunk"]["value"], str)
    assert "messages" not in request


def test_the_log_of_a_telegram_wallet_shows_the_old_key() -> None:
    tree, cell = build((0xEBA19948, 32), (0xAB, 256))
    expected = {"@type": "tg_wallet_key_changed", "encrypted_old_private_key": f"{0xAB:064X}"}
    assert show(tree, cell) == ("tg_wallet_key_changed", expected)


def encode_telegram_bulk(count: int, claimed: int) -> tuple[CellTree, int]:
    """Build a bulk request, two messages a chunk."""
    tree = CellBuilder().tree
    message = CellBuilder(tree).store_uint(0b11, 2).store_uint(0, 4).store_uint(0, 96)
    message.store_uint(0, 2)
    sent = message.end()
    chunk: int | None = None
    for first in range(0, count, 2):
        cell = CellBuilder(tree).store_maybe_ref(chunk)
        for _ in range(first, min(first + 2, count)):
            cell.store_uint(3, 8).store_ref(sent)
        chunk = cell.end()
    body = CellBuilder(tree).store_uint(1 << 511, 512).store_uint(0x73896E74, 32)
    body.store_uint(0, 96).store_uint(claimed, 8).store_maybe_ref(chunk)
    return tree, body.end()


def test_bytes_that_are_no_text_are_no_comment() -> None:
    tree, cell = build((0, 32), rest=b"\xff\xfe")
    assert show_message(tree, cell, external_in=False) == ("text_comment", None)


@pytest.mark.parametrize("odd", [0, 3])
@pytest.mark.parametrize(
    ("opcode", "shown"),
    [
        (TEXT_OPCODE, {"@type": "text_comment", "text": "Hello"}),
        (
            ENCRYPTED_OPCODE,
            {"@type": "encrypted_text_comment", "cipher_text": b"Hello".hex().upper()},
        ),
    ],
)
def test_a_comment_is_what_wallets_show(odd: int, opcode: int, shown: dict[str, str]) -> None:
    """Whole bytes of the first children; other references, odd bits and empty cells add nothing."""
    tree = CellBuilder().tree
    other = CellBuilder(tree).store_uint(9, 8).end()
    last = CellBuilder(tree).store_bytes(b"llo").store_ref(CellBuilder(tree).end()).end()
    middle = (
        CellBuilder(tree).store_bytes(b"He").store_uint(0, odd).store_ref(last).store_ref(other)
    )
    root = CellBuilder(tree).store_uint(opcode, 32).store_ref(middle.end()).store_ref(other).end()
    assert show(tree, root) == (shown["@type"], shown)
    words = read_text(parse_boc(serialize_boc(tree, [root])))
    assert words is not None
    assert words.text == b"Hello"
    is_encrypted = opcode == ENCRYPTED_OPCODE
    comment = b64encode(b"Hello").decode() if is_encrypted else "Hello"
    assert read_comment(Body(tree, root)) == (comment, is_encrypted)
    fields = {"comment": comment, "encrypted": is_encrypted}
    assert read_order_body(Fielded(tree, root)) == ("ton_transfer", fields)


def test_an_exotic_body_is_not_decoded() -> None:
    library = CellBuilder().store_uint(2, 8).store_bytes(bytes(32))
    cell = library.end(exotic=True)
    assert show_message(library.tree, cell, external_in=False) == (None, None)


def test_an_exotic_payload_is_shown_raw() -> None:
    library = CellBuilder().store_uint(2, 8).store_bytes(bytes(32))
    child = library.end(exotic=True)
    body = CellBuilder(library.tree).store_uint(0x474F86CF, 32).store_uint(1, 64)
    value = show(library.tree, body.store_maybe_ref(child).end())[1]
    assert value is not None
    shown = value["payload"]
    assert isinstance(shown, dict)
    bag = parse_boc(b64decode(str(shown["value"])))
    assert bag.kind(bag.roots[0]) == 2


def nest(payloads: int) -> tuple[CellTree, int]:
    """Build bounces around bounces."""
    cell = CellBuilder()
    child = cell.store_uint(BOUNCE, 32).end()
    for _ in range(payloads):
        forward = CellBuilder(cell.tree).store_uint(0x474F86CF, 32).store_uint(0, 64)
        child = forward.store_maybe_ref(child).end()
    return cell.tree, child


def test_payloads_are_decoded_ten_levels_deep() -> None:
    tree, cell = nest(MAX_PAYLOADS + 5)
    value: Value | None = show(tree, cell)[1]
    depth = 0
    while isinstance(value, dict) and value.get("@type") == "dedust_payout":
        depth += 1
        payload = value["payload"]
        assert isinstance(payload, dict)
        value = payload["value"]
    assert depth == MAX_PAYLOADS + 1
    assert isinstance(value, str)


def test_a_body_too_deep_for_its_layout_is_not_decoded() -> None:
    nothing: Value = {"@type": "nothing_from_maybe"}
    swap = nothing
    address: Value = {"@type": "addr_none"}
    limit: Value = {"@type": "nanocoins", "amount": {"@type": "var_uint", "len": "0", "value": "0"}}
    for _ in range(MAX_LEVELS + 2):
        params: Value = {"@type": "step_params", "kind": False, "limit": limit, "next": swap}
        step: Value = {"@type": "step", "pool_addr": address, "params": params}
        swap = {"@type": "something_from_maybe", "value": {"cell_reference": step}}
    rest: Object = {
        "deadline": {"timestamp": "0"},
        "recipient_addr": address,
        "referral_addr": address,
    }
    swap_params: Object = {"@type": "swap_params", **rest}
    swap_params |= {"fulfill_payload": nothing, "reject_payload": nothing}
    fields: Object = {"query_id": "0", "amount": limit, "": step, "swap_params": swap_params}
    tree, cell = encode_body("dedust_swap", **fields)
    assert show(tree, cell) == ("dedust_swap", None)


def test_wallet_messages_are_tried_for_external_messages_only() -> None:
    tree, cell = build((1, 512), (698983191, 32), (0, 32), (5, 32))
    assert show_message(tree, cell, external_in=False) == (
        "text_comment",
        None,
    )
    value = show_message(tree, cell, external_in=True)[1]
    assert value is not None
    assert value["@type"] == "wallet_signed_v3"
    assert value["msgs"] == {"@type": "msgs_0"}


def test_opcodes_have_the_name_of_their_first_layout() -> None:
    assert name_opcode(TRANSFER) == "jetton_transfer"
    assert name_opcode(0x7362D09C) == "jetton_notify"
    assert name_opcode(0xDEADBEEF) is None


OPCODES = sorted(load_scheme().layouts)


@settings(max_examples=120, deadline=None)
@given(
    opcode=st.sampled_from(OPCODES),
    tails=st.lists(st.binary(max_size=123), min_size=1, max_size=6),
    links=st.lists(st.integers(0, 5), max_size=8),
    external_in=st.booleans(),
)
def test_garbage_after_an_opcode_never_raises(
    *, opcode: int, tails: list[bytes], links: list[int], external_in: bool
) -> None:
    tree = CellBuilder().tree
    cells: list[int] = []
    for number, tail in enumerate(tails):
        cell = CellBuilder(tree)
        if number == len(tails) - 1:
            cell.store_uint(opcode, 32)
        cell.store_bytes(tail)
        for link in links[number : number + 4] if cells else ():
            cell.store_ref(cells[link % len(cells)])
        cells.append(cell.end())
    name, value = show_message(tree, cells[-1], external_in=external_in)
    assert name == name_opcode(opcode)
    assert value is None or "@type" in value


def test_bodies_of_dedust_v2_are_read(shared: Path) -> None:
    """Each layout fits the recorded messages; amounts agree from payment to payout."""
    found: dict[str, list[Any]] = {}
    for name, value in read_traces(shared, "classifier-new/traces"):
        if name.startswith("dedust_v2_"):
            assert value is not None, name
            found.setdefault(name.removeprefix("dedust_v2_"), []).append(value)
    assert found.keys() == {
        *("withdraw", "join", "payout_fees", "payout", "claim_fees", "credit_liquidity"),
        *("claim_reward", "payout_reward", "pay_native", "credit", "exit"),
        *("deposit_event", "withdrawal_event"),
    }
    withdraw, event = found["withdraw"][0], found["withdrawal_event"][0]
    assert withdraw["liquidity"] == event["liquidity"]
    for least, paid in (("min_x", "x_out"), ("min_y", "y_out")):
        assert int(withdraw[least]["amount"]["value"]) < int(event[paid]["amount"]["value"])
    orders = {value["payload"].get("@type") for value in found["pay_native"]}
    assert orders == {"dedust_v2_swap", "dedust_v2_deposit"}
    assert {value["exit_code"] for value in found["payout"]} == {"0", "30"}
