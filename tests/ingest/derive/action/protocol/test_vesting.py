"""Vesting rules on built traces."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import wallet

OWNER, WALLET, TARGET = account("owner"), account("vesting"), account("target")


def test_a_message_is_sent(scene: Scene) -> None:
    body = Cell(wallet.SEND).uint(8, 64).uint(3, 8)
    body.ref(body.child().uint(0b0110, 4).uint(0, 2).address(TARGET).coins(900).uint(0, 106))
    sent = scene.external(OWNER).send(WALLET, body)
    sent.send(TARGET, value=900)
    sent.send(OWNER, Cell(wallet.SENT).uint(8, 64))
    action = scene.find("vesting_send_message")
    data = action.columns.pop("vesting_send_message_data")
    assert data["query_id"] == 8
    assert data["message_boc"].startswith("te6cc")
    assert action.columns == {
        "source": OWNER,
        "destination": WALLET,
        "destination_secondary": TARGET,
        "amount": 900,
    }


def _ask(scene: Scene, rest_bits: int, text: str = "") -> Step:
    """Request a message with a text as the owner, with ``rest_bits`` bits after its value."""
    body = Cell(wallet.SEND).uint(8, 64).uint(3, 8)
    requested = body.child().uint(0b0110, 4).uint(0, 2).address(TARGET).coins(900)
    requested.uint(0, rest_bits)
    if text:
        requested.uint(1, 1).ref(body.child().uint(7, 32).text(text))
    return scene.external(OWNER).send(WALLET, body.ref(requested))


@pytest.mark.parametrize(
    ("sent", "value", "success"), [("same", 1, True), ("other", 900, False), (None, 900, False)]
)
def test_success_is_that_the_requested_body_was_sent(
    scene: Scene, sent: str | None, value: int, *, success: bool
) -> None:
    vesting = _ask(scene, 1 + 4 + 4 + 64 + 32 + 1, "same")
    if sent is not None:
        vesting.send(TARGET, Cell(7).text(sent), value=value)
    vesting.send(OWNER, Cell(wallet.SENT).uint(8, 64))
    assert scene.find("vesting_send_message").success is success


@pytest.mark.parametrize(("value", "success"), [(900, True), (899, False)])
def test_an_unparsable_message_is_matched_by_value(value: int, *, success: bool) -> None:
    scene = Scene()
    vesting = _ask(scene, 9)
    vesting.send(TARGET, value=value)
    vesting.send(OWNER, Cell(wallet.SENT).uint(8, 64))
    assert scene.find("vesting_send_message").success is success


def test_accounts_are_listed_along_the_chain(scene: Scene) -> None:
    body = Cell(wallet.ADD_WHITELIST).uint(8, 64).address(TARGET)
    body.ref(body.child().address(OWNER))
    scene.external(OWNER).send(WALLET, body).send(OWNER, Cell(wallet.WHITELIST_ADDED).uint(8, 64))
    data = scene.find("vesting_add_whitelist").columns["vesting_add_whitelist_data"]
    assert data == {"query_id": 8, "accounts_added": [TARGET, OWNER]}


def test_without_the_answer_it_is_a_call(scene: Scene) -> None:
    scene.external(OWNER).send(WALLET, Cell(wallet.ADD_WHITELIST).uint(8, 64)).abort()
    (action,) = scene.classify()
    assert (action.type, action.success) == ("call_contract", False)
