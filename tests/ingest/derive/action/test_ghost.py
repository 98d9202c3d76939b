"""Actions of external messages that sent nothing, on built bodies of wallets."""

import base64
from hashlib import sha256

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.basic import read_outgoing
from tonlake.ingest.derive.action.protocol import jetton, telegram

WALLET, OTHER, THIRD = account("wallet"), account("other"), account("third")
V3_BITS, V4_BITS = 96, 104


def write_message(body: Cell, to: str, value: int, content: Cell) -> Cell:
    """Write an internal message with its body in a separate cell."""
    message = body.child().uint(0b011000, 6).address(to).coins(value)
    return message.uint(0, 1 + 4 + 4 + 64 + 32).uint(0, 1).uint(1, 1).ref(content)


def write_request(bits: int, *messages: tuple[str, int, int | None]) -> Cell:
    """Write the body of a wallet of version 3 or 4; each message has an opcode or none."""
    body = Cell().uint(0, 512).uint(0, bits)
    for to, value, opcode in messages:
        content = body.child()
        if opcode is not None:
            content.uint(opcode, 32)
        body.uint(3, 8).ref(write_message(body, to, value, content))
    return body


def write_v5(*values: int) -> Cell:
    """Write the body of a wallet of version 5 that sends these values in order."""
    body = Cell(0x7369676E).uint(0, 96)
    actions = body.child()
    for value in values:
        message = write_message(body, OTHER, value, body.child())
        actions = body.child().ref(actions).uint(0x0EC3C86D, 32).uint(3, 8).ref(message)
    return body.uint(1, 1).ref(actions).uint(0, 1).uint(0, 512)


def write_telegram(opcode: int, number: int) -> Cell:
    """Write the common fields of requests to a Telegram wallet; ``number`` has 8 bits."""
    return Cell().uint(0, 512).uint(opcode, 32).uint(0, 96).uint(number, 8)


def write_telegram_one(value: int) -> Cell:
    """Write a request to a Telegram wallet to send one value."""
    body = write_telegram(telegram.SEND_ONE_EXTERNAL, 3)
    return body.ref(write_message(body, OTHER, value, body.child()))


def write_telegram_bulk(*chunks: list[int], more: int = 0) -> Cell:
    """Write a request to a Telegram wallet to send values; its count is too high by ``more``."""
    body = write_telegram(telegram.SEND_BULK_EXTERNAL, sum(map(len, chunks)) + more)
    following: Cell | None = None
    for values in reversed(chunks):
        chunk = body.child().uint(following is not None, 1)
        if following is not None:
            chunk.ref(following)
        for value in values:
            chunk.uint(3, 8).ref(write_message(body, OTHER, value, body.child()))
        following = chunk
    return body.uint(0, 1) if following is None else body.uint(1, 1).ref(following)


def ask(body: Cell) -> Scene:
    """Return the scene of one rejected external message."""
    scene = Scene()
    scene.external(WALLET, body).abort()
    return scene


@pytest.mark.parametrize("bits", [V3_BITS, V4_BITS])
def test_each_message_is_an_action_of_its_kind(bits: int) -> None:
    scene = ask(write_request(bits, (OTHER, 5, None), (THIRD, 6, 0x12345678), (THIRD, 0, 0x123)))
    actions = scene.classify()
    assert [(each.type, each.success) for each in actions] == [
        ("ton_transfer", False),
        ("call_contract", False),
        ("call_contract", True),
    ]
    assert all(each.accounts == [WALLET] for each in actions)
    assert [each.columns["destination"] for each in actions] == [OTHER, THIRD, THIRD]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (write_request(V4_BITS, (OTHER, 5, None), (OTHER, 7, None)), [5, 7]),
        (write_v5(5, 7), [7, 5]),
        (write_telegram_bulk([5, 7], [9]), [5, 7, 9]),
        (write_telegram_one(5), [5]),
    ],
)
def test_ids_number_the_messages(body: Cell, values: list[int]) -> None:
    scene = ask(body)
    actions = scene.classify()
    assert [each.columns["value"] for each in actions] == values
    for number, message in enumerate(read_outgoing(scene.steps[0].message, WALLET)):
        numbered = base64.b64encode(message.msg_hash) + str(number).encode()
        name = base64.b64encode(numbered) + b"ton_transfer"
        assert actions[number].action_id == sha256(name).digest()


@pytest.mark.parametrize("is_known", [True, False])
def test_jettons_need_no_known_wallet(*, is_known: bool) -> None:
    body = Cell().uint(0, 512).uint(0, V3_BITS).uint(3, 8)
    content = body.child().uint(jetton.TRANSFER, 32).uint(7, 64).coins(9).address(THIRD)
    content.address(WALLET).uint(0, 1).coins(0).uint(0, 1)
    scene = ask(body.ref(write_message(body, OTHER, 5, content)))
    if is_known:
        scene.know_wallet(OTHER, WALLET, account("master"))
    columns = scene.find("jetton_transfer").columns
    assert columns["asset"] == (account("master") if is_known else None)
    assert (columns["source_secondary"], columns["destination"]) == (OTHER, THIRD)
    assert columns.get("destination_secondary") is None


def test_a_transfer_to_itself_keeps_its_account() -> None:
    (action,) = ask(write_request(V3_BITS, (WALLET, 5, None))).classify()
    assert action.accounts == [WALLET]


def test_bodies_of_other_wallets_are_unknown() -> None:
    (action,) = ask(write_request(32, (OTHER, 5, None))).classify()
    assert action.type == "unknown"


@pytest.mark.parametrize(
    "body",
    [
        write_telegram_bulk([5, 7], more=1),
        write_telegram_bulk(),
        write_telegram(telegram.CHANGE_KEY_EXTERNAL, 0),
        write_telegram(telegram.SEND_ONE_EXTERNAL, 3),
    ],
    ids=["another count", "no messages", "no messages in a rotation", "no reference"],
)
def test_requests_to_a_telegram_wallet_without_messages(body: Cell) -> None:
    assert [each.type for each in ask(body).classify()] == ["unknown"]
