"""Actions as version 3 writes them, from rows that classification makes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.ingest.derive.action.protocol import test_telegram as telegram_requests
from tests.ingest.derive.action.scene import Scene
from tonlake.api.v3.resource.action import render_action
from tonlake.ingest.derive.action.protocol import telegram
from tonlake.ingest.derive.action.row import ActionRows
from tonlake.lake.schema.action import ACTIONS


def show(scene: Scene) -> Mapping[str, dict[str, Any]]:
    """Return the actions of a scene by type, as clients read them."""
    rows = ActionRows()
    rows.add(scene.trace(), scene.classify())
    table = rows.tables()[ACTIONS.name].to_pylist()
    shown = [msgspec.to_builtins(render_action(row)) for row in table]
    return {each["type"]: each for each in shown}


def test_rotation_names_its_gasless_request() -> None:
    scene = Scene()
    telegram_requests.relay(scene, telegram_requests.write_rotation(telegram.CHANGE_KEY_INTERNAL))
    shown = show(scene)
    request, rotation = shown["gasless_request"], shown["change_wallet_key"]
    assert rotation["parent_gasless_action"] == request["action_id"]
    assert "parent_gasless_action" not in request
    parties = {"source": telegram_requests.RELAYER, "destination": telegram_requests.WALLET}
    assert request["details"] == {**parties, "value": "5000000"}
    assert rotation["details"] == {
        **parties,
        "new_public_key": f"{telegram_requests.KEY:064x}",
        "rotation_signature": f"{0x51:0128x}",
        "encrypted_old_private_key": f"{0x99:064x}",
    }


def test_rotation_from_outside_names_none() -> None:
    scene = Scene()
    telegram_requests.receive(scene, telegram_requests.write_rotation(telegram.CHANGE_KEY_EXTERNAL))
    rotation = show(scene)["change_wallet_key"]
    assert "parent_gasless_action" not in rotation
    assert rotation["details"]["source"] is None
