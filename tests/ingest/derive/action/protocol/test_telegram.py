"""Telegram wallets: signed requests, including gasless ones, and key rotations."""

import base64

import pytest
from nacl.signing import SigningKey

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.protocol import telegram
from tonlake.ingest.derive.action.row import ActionRow, name_action

WALLET, RELAYER, FRIEND = account("wallet"), account("relayer"), account("friend")
SUBWALLET, SEQNO, KEY = 239, 7, 0xABC


def write_request(opcode: int) -> Cell:
    """Return the common fields of requests, after a signature."""
    body = Cell().uint(0xF5 << 504 | 1, 512).uint(opcode, 32)
    return body.uint(SUBWALLET, 32).uint(Scene.now + 60, 32).uint(SEQNO, 32)


def write_send(opcode: int = telegram.SEND_ONE_INTERNAL) -> Cell:
    body = write_request(opcode)
    return body.uint(3, 8).ref(body.child().uint(0, 8))


def write_rotation(opcode: int) -> Cell:
    body = write_request(opcode).uint(KEY, 256)
    body.ref(body.child().uint(0x51, 512))
    return body.ref(body.child().uint(0x99, 256))


def relay(scene: Scene, body: Cell) -> Step:
    """Send a request to the wallet through a relayer."""
    return scene.external(RELAYER).send(WALLET, body, value=5_000_000)


def name_request(step: Step) -> bytes:
    """Return the id of the gasless request that a step received."""
    return name_action(step.message.msg_hash, "gasless_request")


def find_parent(action: ActionRow) -> bytes | None:
    """Return the id of the gasless request of an action."""
    name = action.columns.get("extra", {}).get("parent_gasless_action")
    return None if name is None else base64.b64decode(name)


def list_types(scene: Scene) -> list[str]:
    return sorted(action.type for action in scene.classify())


def test_relayed_request(scene: Scene) -> None:
    step = relay(scene, write_send())
    step.send(FRIEND, value=1_000_000).send(RELAYER, value=5)
    marker = scene.find("gasless_request")
    assert marker.columns == {"source": RELAYER, "destination": WALLET, "value": 5_000_000}
    assert marker.success
    assert set(marker.accounts) == {RELAYER, WALLET}
    assert len(marker.tx_hashes) == 2
    assert marker.action_id == name_request(step)
    assert find_parent(marker) is None
    request = scene.find("call_contract")
    assert request.columns["opcode"] == telegram.SEND_ONE_INTERNAL
    assert find_parent(request) is None
    first, second = (each for each in scene.classify() if each.type == "ton_transfer")
    assert (find_parent(first), find_parent(second)) == (marker.action_id, None)


def test_nested_request_names_the_outer(scene: Scene) -> None:
    outer = relay(scene, write_send(telegram.SEND_BULK_INTERNAL))
    inner = outer.send(FRIEND, write_send())
    inner.send(RELAYER, value=3)
    later = [each for each in scene.classify() if each.start_lt > outer.lt]
    parents = {each.type: find_parent(each) for each in later}
    assert parents == {
        "call_contract": name_request(outer),
        "gasless_request": name_request(outer),
        "ton_transfer": name_request(inner),
    }


def test_wallet_v5_request_is_gasless_and_extension_is_not() -> None:
    scene = Scene()
    step = relay(scene, Cell(0x73696E74).uint(1, 96)).abort()
    assert scene.find("gasless_request").action_id == name_request(step)
    assert not scene.find("gasless_request").success
    scene = Scene()
    relay(scene, Cell(0x6578746E).uint(1, 96))
    assert list_types(scene) == ["call_contract"]


def test_other_opcodes_stay(scene: Scene) -> None:
    body = Cell(0xDEADBEEF).uint(0, 480).uint(telegram.SEND_ONE_INTERNAL - 1, 32)
    relay(scene, body.uint(0, 200))
    assert scene.find("call_contract").columns["opcode"] == 0xDEADBEEF


def test_relayed_rotation(scene: Scene) -> None:
    step = relay(scene, write_rotation(telegram.CHANGE_KEY_INTERNAL))
    assert list_types(scene) == ["change_wallet_key", "gasless_request"]
    rotation = scene.find("change_wallet_key")
    assert rotation.columns == {
        "source": RELAYER,
        "destination": WALLET,
        "value": 5_000_000,
        "extra": {
            "new_public_key": f"{KEY:064x}",
            "rotation_signature": f"{0x51:0128x}",
            "encrypted_old_private_key": f"{0x99:064x}",
            "parent_gasless_action": base64.b64encode(name_request(step)).decode(),
        },
    }
    assert rotation.success
    assert len(rotation.tx_hashes) == 2
    assert rotation.accounts == sorted((RELAYER, WALLET))


def test_external_rotation() -> None:
    scene = Scene()
    scene.external(WALLET, write_rotation(telegram.CHANGE_KEY_EXTERNAL))
    rotation = scene.find("change_wallet_key")
    assert (rotation.columns["source"], rotation.columns["value"]) == (None, None)
    assert rotation.accounts == [WALLET]
    assert find_parent(rotation) is None
    scene = Scene()
    scene.external(WALLET, write_rotation(telegram.CHANGE_KEY_INTERNAL))
    assert list_types(scene) == ["unknown"], "an external message has an opcode of its own"


def test_rotation_that_failed(scene: Scene) -> None:
    relay(scene, write_rotation(telegram.CHANGE_KEY_INTERNAL)).abort()
    assert list_types(scene) == ["call_contract", "gasless_request"]


def test_rotation_with_a_remainder(scene: Scene) -> None:
    relay(scene, write_rotation(telegram.CHANGE_KEY_INTERNAL).uint(0, 1))
    assert list_types(scene) == ["call_contract", "gasless_request"]


OLD, NEW = SigningKey(b"o" * 32), SigningKey(b"n" * 32)


def write_signed(
    *, signs: SigningKey = OLD, rotates: SigningKey = NEW, owner: str = WALLET
) -> Cell:
    """Return a rotation from the old key to the new one, signed with the given keys."""

    def write(body: Cell) -> Cell:
        body.uint(telegram.CHANGE_KEY_INTERNAL, 32).uint(SUBWALLET, 32)
        body.uint(Scene.now + 60, 32).uint(SEQNO, 32).uint(to_number(NEW.verify_key.encode()), 256)
        body.ref(body.child().uint(to_number(rotates.sign(hash_owner(owner)).signature), 512))
        return body.ref(body.child().uint(0x99, 256))

    signature = signs.sign(hash_cell(write(Cell()))).signature
    return write(Cell().uint(to_number(signature), 512))


def hash_owner(owner: str) -> bytes:
    digits = owner.partition(":")[2]
    return hash_cell(Cell().text("KEY_ROTATION").uint(0, 8).uint(int(digits, 16), 256))


def hash_cell(cell: Cell) -> bytes:
    tree = parse_boc(cell.boc())
    return tree.hash(tree.roots[0])


def to_number(data: bytes) -> int:
    return int.from_bytes(data)


@pytest.mark.parametrize(
    ("seqno", "subwallet", "key", "body", "is_done"),
    [
        (SEQNO + 1, SUBWALLET, NEW, write_signed(), True),
        (SEQNO + 1, SUBWALLET, NEW, write_signed(rotates=OLD), False),
        (SEQNO + 1, SUBWALLET, NEW, write_signed(owner=FRIEND), False),
        (SEQNO + 1, SUBWALLET + 1, NEW, write_signed(), False),
        (SEQNO + 1, SUBWALLET, OLD, write_signed(), False),
        (SEQNO, SUBWALLET, OLD, write_signed(), True),
        (SEQNO, SUBWALLET, OLD, write_signed(signs=NEW), False),
        (SEQNO - 1, SUBWALLET, OLD, write_signed(), False),
    ],
)
def test_storage_agrees_with_a_rotation(
    scene: Scene, *, seqno: int, subwallet: int, key: SigningKey, body: Cell, is_done: bool
) -> None:
    relay(scene, body)
    data = Cell().uint(1, 8).uint(seqno, 32).uint(subwallet, 32)
    data.uint(to_number(key.verify_key.encode()), 256)
    scene.know(WALLET, "data_boc", data_boc=base64.b64encode(data.boc()).decode())
    taken = "change_wallet_key" if is_done else "call_contract"
    assert list_types(scene) == [taken, "gasless_request"]
