"""Trees of messages, with their names and the actions that claimed them."""

import pytest

from tests.ingest.derive.action.protocol import test_dedust_v2 as dedust
from tests.ingest.derive.action.protocol import test_hipo as hipo
from tests.ingest.derive.action.protocol import test_telegram as telegram
from tests.ingest.derive.action.protocol import test_wallet as extension
from tests.ingest.derive.action.scene import Scene
from tonlake.ingest.command.action import explain
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.protocol.telegram import (
    CHANGE_KEY_EXTERNAL,
    CHANGE_KEY_INTERNAL,
    SEND_ONE_INTERNAL,
)


def explain_scene(scene: Scene) -> list[str]:
    return list(explain(scene.trace(), Interfaces(scene.facts)))


def test_hipo(scene: Scene) -> None:
    hipo.mint_bill(hipo.deposit(scene), 8)
    lines = "\n".join(explain_scene(scene))
    for name in ("3d3761a6 hipo_finance_deposit_coins", "4b2d7871 hipo_finance_mint_bill"):
        assert name in lines
    assert "3275dfc2 hipo_finance_assign_bill" in lines
    assert lines.count("stake_deposit failed [hipo.deposit]") == 2


def test_dedust_v2(scene: Scene) -> None:
    dedust.swap_twice(scene)
    lines = "\n".join(explain_scene(scene))
    assert "a5a7cbf8 dedust_v2_pay_native" in lines
    assert lines.count("78e79ba4 dedust_v2_swap_event") == 2
    assert "jetton_swap [dedust_v2.swap]" in lines


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        (SEND_ONE_INTERNAL, "63896e74 tg_wallet_send_one_internal"),
        (CHANGE_KEY_INTERNAL, "fbba99c7 tg_wallet_change_key_internal"),
    ],
)
def test_gasless_request(scene: Scene, opcode: int, name: str) -> None:
    is_change = opcode == CHANGE_KEY_INTERNAL
    write = telegram.write_rotation if is_change else telegram.write_send
    telegram.relay(scene, write(opcode))
    line = explain_scene(scene)[1].strip()
    assert line.startswith(name)
    assert "gasless" in line


def test_key_changed_from_outside(scene: Scene) -> None:
    scene.external(telegram.WALLET, telegram.write_rotation(CHANGE_KEY_EXTERNAL))
    (line,) = explain_scene(scene)
    assert line.startswith("fbba99c8 tg_wallet_change_key_external  outside -> ")
    assert "change_wallet_key [telegram.change_key]" in line


def test_extension() -> None:
    body = extension.write_request().uint(extension.ADD, 8).address(extension.EXTENSION)
    scene, _step = extension.ask(body.uint(9, 512))
    (line,) = explain_scene(scene)
    assert "7369676e w5_external_signed_request" in line
    assert "wallet_v5_add_extension [" in line
