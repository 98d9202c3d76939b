"""Wallets on built traces: subscriptions, and extensions added and removed by external messages."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import wallet
from tonlake.ingest.derive.action.protocol.wallet import EXTERNAL_REQUEST

WALLET, PLUGIN, SHOP = account("wallet"), account("plugin"), account("shop")


@pytest.mark.parametrize("asked", [True, False])
def test_payment(scene: Scene, *, asked: bool) -> None:
    if asked:
        request = Cell(wallet.PAYMENT_REQUEST).uint(1, 64).coins(50)
        step = scene.external(PLUGIN).send(WALLET, request)
    else:
        step = scene.external(WALLET)
    confirmed = step.send(PLUGIN, opcode=wallet.PAYMENT_CONFIRMED)
    confirmed.send(SHOP, opcode=wallet.PAYMENT)
    action = scene.find("subscribe")
    assert action.columns == {
        "source": WALLET,
        "destination": SHOP,
        "destination_secondary": PLUGIN,
        "amount": 50 if asked else 1_000_000_000,
    }


@pytest.mark.parametrize("notified", [True, False])
def test_removal(scene: Scene, *, notified: bool) -> None:
    removed = scene.external(WALLET).send(PLUGIN, opcode=wallet.DESTRUCT)
    if notified:
        removed.send(SHOP, opcode=wallet.DESTRUCT)
    else:
        removed.abort()
    action = scene.find("unsubscribe")
    assert action.success
    assert action.columns["destination"] == (SHOP if notified else None)
    assert action.columns["destination_secondary"] == PLUGIN


EXTENSION, OTHER = account("extension"), account("other")
WALLET_ID, VALID_UNTIL, SEQNO = 2147483645, 1776948067, 33
ADD, REMOVE, ALLOW = 2, 3, 4


def write_request(opcode: int = EXTERNAL_REQUEST) -> Cell:
    """Return a request up to its first extended action, without messages."""
    body = Cell(opcode).uint(WALLET_ID, 32).uint(VALID_UNTIL, 32).uint(SEQNO, 32)
    return body.uint(0, 1).uint(1, 1)


def ask(body: Cell) -> tuple[Scene, Step]:
    """Return the scene of a request that the wallet accepted, and its step."""
    scene = Scene()
    step = scene.external(WALLET, body)
    step.message.opcode = EXTERNAL_REQUEST
    return scene, step


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ADD, "wallet_v5_add_extension"), (REMOVE, "wallet_v5_remove_extension")],
)
def test_change(kind: int, name: str) -> None:
    scene, _step = ask(write_request().uint(kind, 8).address(EXTENSION).uint(9, 512))
    (action,) = scene.classify()
    assert (action.type, action.success) == (name, True)
    assert action.columns == {
        "source": WALLET,
        "destination": EXTENSION,
        "wallet_v5_extension_data": {
            "wallet_id": WALLET_ID,
            "seqno": SEQNO,
            "valid_until": VALID_UNTIL,
            "signature_allowed": None,
        },
    }
    assert action.accounts == sorted((WALLET, EXTENSION))
    assert len(action.tx_hashes) == 1


def test_refused_change_is_not_aborted() -> None:
    scene, step = ask(write_request().uint(ADD, 8).address(WALLET).uint(9, 512))
    step.exit_code = 139
    (action,) = scene.classify()
    assert not action.success
    assert action.accounts == [WALLET]


def test_first_of_several_changes() -> None:
    body = write_request().uint(REMOVE, 8).address(EXTENSION).uint(9, 512)
    last = body.child().uint(ALLOW, 8).uint(1, 1)
    scene, _step = ask(body.ref(body.child().uint(ADD, 8).address(OTHER).ref(last)))
    action = scene.find("wallet_v5_remove_extension")
    assert action.columns["destination"] == EXTENSION
    assert action.columns["wallet_v5_extension_data"]["signature_allowed"] is True


@pytest.mark.parametrize(
    "body",
    [
        write_request().uint(ALLOW, 8).uint(1, 1).uint(9, 512),
        write_request().uint(ADD, 8).address(EXTENSION).uint(9, 511),
        write_request().uint(5, 8).address(EXTENSION).uint(9, 512),
    ],
    ids=["no extension", "no signature", "unknown action"],
)
def test_no_change(body: Cell) -> None:
    scene, _step = ask(body)
    assert [action.type for action in scene.classify()] == ["unknown"]


def test_request_inside_the_chain_stays_a_call(scene: Scene) -> None:
    body = write_request(0x73696E74).uint(ADD, 8).address(EXTENSION).uint(9, 512)
    scene.external(OTHER).send(WALLET, body)
    assert "wallet_v5_add_extension" not in {action.type for action in scene.classify()}
