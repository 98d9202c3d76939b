"""Bodies of public reports, and siblings of each that the SDK pytoniq-core builds."""

from pathlib import Path
from typing import Any

import pytest
from pytoniq_core import Address, Builder, Cell, HashMap, StateInit, begin_cell

from tests.ingest.derive.body.encode import show_bag
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.body import Decoded, decode_body, decode_message_body
from tonlake.ingest.derive.body.codec import MAX_ITEMS, MAX_TEXT

OWNER = Address((0, b"\x11" * 32))
W5_EXTERNAL, W5_INTERNAL, W5_EXTENSION = 0x7369676E, 0x73696E74, 0x6578746E
SEND, HIGHLOAD_V3 = 0x0EC3C86D, 0xAE42E5A4
TRANSFER, INTERNAL, BURN, NOTIFY, BURN_NOTE, NFT_TRANSFER = (
    *(0x0F8A7EA5, 0x178D4519, 0x595F07BC, 0x7362D09C, 0x7BDD97DE, 0x5FCC3D14),
)
NFT_MINTS = {1: 7, 2: 100, 3: 0, 4: 1, 5: 9, 6: 200}


def read(folder: Path, name: str) -> bytes:
    return bytes.fromhex((folder / f"{name}.hex").read_text())


@pytest.fixture
def reports(shared: Path) -> Path:
    folder = shared / "data" / "reports"
    if not folder.exists():
        pytest.skip("the reports (../shared/data/reports) are not on this machine")
    return folder


def decode(body: bytes | Cell) -> tuple[str | None, Any]:
    return show_bag(body if isinstance(body, bytes) else body.to_boc())


def send(number: int, init: StateInit | None = None) -> Any:
    cell = begin_cell().store_uint(0x18, 6).store_address(OWNER).store_coins(number)
    cell = cell.store_uint(0, 1 + 4 + 4 + 64 + 32).store_bit(init is not None)
    if init is not None:
        cell = cell.store_bit(1).store_ref(init.serialize())
    return cell.store_bit(0).end_cell()


def list_actions(messages: list[Cell]) -> Any:
    out = begin_cell().end_cell()
    for message in messages:
        out = begin_cell().store_ref(out).store_uint(SEND, 32).store_uint(3, 8).store_ref(message)
        out = out.end_cell()
    return out


def request_w5(opcode: int, actions: Cell) -> Any:
    cell = begin_cell().store_uint(opcode, 32)
    if opcode == HIGHLOAD_V3:
        return cell.store_uint(5, 64).store_ref(actions).end_cell()
    if opcode == W5_EXTENSION:
        return cell.store_uint(7, 64).store_maybe_ref(actions).store_bit(0).end_cell()
    cell = cell.store_uint(1, 32).store_uint(2, 32).store_uint(3, 32)
    return cell.store_maybe_ref(actions).store_bit(0).store_bytes(bytes(64)).end_cell()


def list_sent(request: Any) -> list[Any]:
    """Return the messages of an action list, from the first to the last."""
    found = []
    inner = request.get("inner", request)
    item = inner.get("actions") or inner["out_actions"]["value"]["cell_reference"]
    while item["@type"] == "out_list":
        found.append(item["action"]["out_msg"])
        item = item["prev"]
    return found[::-1]


def test_a_reported_wallet_sends_100_messages(reports: Path) -> None:
    name, value = decode(read(reports / "07-w5-many-actions", "body"))
    assert name == value["@type"] == "w5_external_signed_request"
    assert len(list_sent(value["request"])) == 100


@pytest.mark.parametrize("count", [0, 2, 47, 48, 254, 255])
@pytest.mark.parametrize("opcode", [W5_EXTERNAL, W5_INTERNAL, W5_EXTENSION, HIGHLOAD_V3])
def test_wallets_send_up_to_255_messages(opcode: int, count: int) -> None:
    actions = list_actions([send(number) for number in range(count)])
    _name, value = decode(request_w5(opcode, actions))
    amounts = [
        each["info"]["value"]["grams"]["amount"]["value"]
        for each in list_sent(value.get("request", value))
    ]
    assert amounts == [str(number) for number in range(count)]


def test_preprocessed_wallets_send_255_messages() -> None:
    """Their code takes the actions by PLDREF: no bit says that there are any."""
    actions = list_actions([send(number) for number in range(255)])
    inner = begin_cell().store_uint(9, 64).store_uint(1, 16).store_ref(actions).end_cell()
    _name, value = decode(begin_cell().store_bytes(bytes(64)).store_ref(inner).end_cell())
    assert value["@type"] == "preprocessed_wallet_signed_v2"
    assert len(list_sent(value["payload"])) == 255


def test_wallets_v5_change_200_extensions() -> None:
    following: Cell | None = None
    for _ in range(200):
        cell = begin_cell().store_uint(2, 8).store_address(OWNER)
        following = (cell if following is None else cell.store_ref(following)).end_cell()
    assert following is not None
    body = begin_cell().store_uint(W5_EXTENSION, 32).store_uint(7, 64).store_bit(0).store_bit(1)
    _name, value = decode(body.store_slice(following.begin_parse()).end_cell())
    item, count = value["request"]["extended_actions"]["value"], 0
    while item is not None:
        item, count = item.get("prev"), count + 1
    assert count == 200


@pytest.mark.parametrize("code_bytes", [100, 2000, 8000])
def test_a_code_cell_that_all_messages_share_counts_once(code_bytes: int) -> None:
    code = begin_cell().end_cell()
    for at in range(0, code_bytes, 120):
        code = begin_cell().store_uint((1 << 959) + at, 960).store_ref(code).end_cell()
    init = StateInit(code=code, data=begin_cell().store_uint(1, 8).end_cell())
    messages = [send(number, init) for number in range(100)]
    _name, value = decode(request_w5(W5_EXTERNAL, list_actions(messages)))
    states = [
        each["init"]["value"]["value"]["cell_reference"] for each in list_sent(value["request"])
    ]
    assert len({state["code"]["value"] for state in states}) == 1
    assert len(states) == 100


def test_a_row_says_which_limit_was_met() -> None:
    found = decode_cell(request_w5(W5_EXTERNAL, list_actions([send(1)] * (MAX_ITEMS + 1))))
    assert found.json is None
    assert found.limit == f"a list of the body has more than {MAX_ITEMS} items"
    leaf = begin_cell().store_uint(0, 2).store_uint(3, 8).store_ref(send(1)).end_cell()
    for _ in range(16):
        leaf = begin_cell().store_uint(0, 2).store_ref(leaf).store_ref(leaf).end_cell()
    body = begin_cell().store_bytes(bytes(64)).store_uint(1, 32).store_uint(2, 64)
    found = decode_cell(body.store_maybe_ref(leaf).end_cell())
    assert found.json is None
    assert found.limit == f"shared cells repeat more than {MAX_TEXT:,} characters"


def decode_cell(body: Cell) -> Decoded:
    tree = parse_boc(body.to_boc())
    return decode_body(tree, tree.roots[0])


def test_a_reported_request_of_highload_wallet_v3(reports: Path) -> None:
    _name, value = decode(read(reports / "05-highload-v3-internal", "body"))
    assert (value["@type"], value["query_id"]) == ("highload_v3_internal_request", "12")
    action = value["actions"]["action"]
    assert (action["@type"], action["mode"]) == ("action_send_msg", "3")
    assert action["out_msg"]["info"]["value"]["grams"]["amount"]["value"] == "7"


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("mint", "nft_collection_mint"),
        ("batch", "nft_collection_batch_mint"),
        ("change_owner", "change_owner"),
    ],
)
def test_reported_bodies_with_numbers(reports: Path, name: str, layout: str) -> None:
    assert claim(read(reports / "09-nft-mint-named-pyth", name)) == layout


def claim(body: bytes) -> str | None:
    found = decode_message_body(body, external_in=False)
    assert (found.json is None) == (found.own_name is None)
    return found.own_name


USED_UP = {
    1: [None, None, None, None, "nft_collection_mint"],
    3: [None, "change_owner", None, None, None],
    4: [None, None, None, "change_content", None],
}


@pytest.mark.parametrize("opcode", range(1, 7))
def test_bodies_with_numbers_are_claimed_only_if_used_up(opcode: int) -> None:
    """A number alone, changes of owner, of an amount and of content, a mint of a collection."""
    content = begin_cell().store_address(OWNER).store_ref(begin_cell().end_cell()).end_cell()
    start = begin_cell().store_uint(opcode, 32).store_uint(9, 64)
    bodies: list[Builder] = [
        begin_cell().store_uint(opcode, 32),
        begin_cell().store_cell(start.end_cell()).store_address(OWNER),
        begin_cell().store_cell(start.end_cell()).store_coins(10**9),
        begin_cell().store_cell(start.end_cell()).store_ref(content).store_ref(content),
        begin_cell()
        .store_cell(start.end_cell())
        .store_uint(NFT_MINTS[opcode], 64)
        .store_coins(50_000_000)
        .store_ref(content),
    ]
    claims = [claim(body.end_cell().to_boc()) for body in bodies]
    assert claims == USED_UP.get(opcode, [None] * len(bodies))
    assert {claim(body.store_bit(1).end_cell().to_boc()) for body in bodies} == {None}
    switch = begin_cell().store_cell(start.end_cell()).store_bit(0)
    assert claim(switch.end_cell().to_boc()) is None


def test_a_body_with_a_number_that_is_used_up_is_claimed() -> None:
    body = begin_cell().store_uint(0x15, 32).store_uint(9, 64).store_address(OWNER)
    body = body.store_coins(10**8).store_ref(begin_cell().store_uint(INTERNAL, 32).end_cell())
    found = decode_message_body(body.end_cell().to_boc(), external_in=False)
    assert found.own_name == "minter_jetton_mint"


FIELDS: dict[int, list[tuple[str, str]]] = {
    TRANSFER: [
        *(("amount", "coins"), ("destination", "address"), ("response_destination", "address")),
        *(("custom_payload", "maybe"), ("forward_ton_amount", "coins")),
        ("forward_payload", "either"),
    ],
    INTERNAL: [
        *(("amount", "coins"), ("from", "address"), ("response_address", "address")),
        *(("forward_ton_amount", "coins"), ("forward_payload", "either")),
    ],
    BURN: [("amount", "coins"), ("response_destination", "address"), ("custom_payload", "maybe")],
    NOTIFY: [("amount", "coins"), ("sender", "address"), ("forward_payload", "either")],
    BURN_NOTE: [("amount", "coins"), ("sender", "address"), ("response_destination", "address")],
    NFT_TRANSFER: [
        *(("new_owner", "address"), ("response_destination", "address")),
        *(("custom_payload", "maybe"), ("forward_amount", "coins"), ("forward_payload", "either")),
    ],
}
ENDINGS = [
    (opcode, count)
    for opcode, fields in FIELDS.items()
    for count in range(1 + (opcode in {TRANSFER, NOTIFY}), len(fields) + 1)
]


@pytest.mark.parametrize(("opcode", "count"), ENDINGS)
def test_bodies_of_tokens_are_decoded_as_far_as_they_go(opcode: int, count: int) -> None:
    body = begin_cell().store_uint(opcode, 32).store_uint(77, 64)
    for _name, kind in FIELDS[opcode][:count]:
        if kind == "coins":
            body = body.store_coins(5)
        elif kind == "address":
            body = body.store_address(OWNER)
        else:
            body = body.store_bit(0)
    value = decode(body.end_cell())[1]
    shown = ["@type", "query_id", *[name for name, _kind in FIELDS[opcode][:count]]]
    if (opcode, count) == (INTERNAL, 4):
        shown.append("forward_payload")  # of the layout that takes any rest
    assert list(value) == shown
    # A field that is cut off is not the end of a body.
    half = body.store_bits("0110011").end_cell()
    if count < len(FIELDS[opcode]) and FIELDS[opcode][count][1] == "address":
        assert decode(half)[1] is None


@pytest.mark.parametrize("count", [254, MAX_ITEMS, MAX_ITEMS + 1, 800])
def test_a_dictionary_is_decoded_whole_or_names_the_limit(count: int) -> None:
    """Highload wallets v2 send a dictionary of messages, which may share a code cell."""
    code = begin_cell().end_cell()
    for at in range(20):
        code = begin_cell().store_uint((1 << 959) + at, 960).store_ref(code).end_cell()
    table = HashMap(16, value_serializer=lambda sent, to: to.store_uint(3, 8).store_ref(sent))
    for number in range(count):
        table.set(number, send(number, StateInit(code=code)))
    body = begin_cell().store_bytes(bytes(64)).store_uint(1, 32).store_uint(1 << 40, 64)
    found = decode_cell(body.store_dict(table.serialize()).end_cell())
    limit = f"a dictionary of the body has more than {MAX_ITEMS} entries" * (count > MAX_ITEMS)
    assert (found.limit, found.json is None) == (limit or None, bool(limit))
    assert str(found.json).count('"hashmap_node_leaf"') == count * (count <= MAX_ITEMS)


@pytest.mark.parametrize(
    ("opcode", "rest", "name"),
    [
        (0x1000, begin_cell().store_coins(10**9), "single_nominator_withdraw"),
        (0x1001, begin_cell().store_address(OWNER), "single_nominator_change_validator"),
        (0x7702, begin_cell().store_uint(3, 8).store_ref(send(1)), "single_nominator_send_raw"),
        (0x9903, begin_cell().store_ref(send(1)), "single_nominator_upgrade"),
    ],
)
def test_bodies_of_single_nominators(opcode: int, rest: Builder, name: str) -> None:
    body = begin_cell().store_uint(opcode, 32).store_uint(1, 64).store_cell(rest.end_cell())
    found = decode_message_body(body.end_cell().to_boc(), external_in=False)
    assert found.own_name == name
