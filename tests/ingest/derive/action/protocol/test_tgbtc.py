"""tgBTC rules on built traces: logs without the messages around them."""

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import tgbtc

BRIDGE, OWNER, PEGOUT = account("bridge"), account("owner"), account("pegout")


def test_logs_alone_make_fallbacks(scene: Scene) -> None:
    step = scene.external(BRIDGE)
    step.send(None, Cell(tgbtc.MINT_LOG).coins(5).address(OWNER).uint(0x0102, 256))
    step.send(None, Cell(tgbtc.BURN_LOG).coins(6).address(OWNER).address(PEGOUT))
    step.send(None, Cell(tgbtc.NEW_KEY_LOG).coins(7).uint(0xAB, 256).address(PEGOUT))
    minted = scene.find("tgbtc_mint_fallback")
    assert minted.columns == {
        "amount": 5,
        "destination": OWNER,
        "extra": {"btc_txid": "0201" + "00" * 30},
        "source": BRIDGE,
        "source_secondary": BRIDGE,
    }
    burnt = scene.find("tgbtc_burn_fallback").columns
    assert burnt == {"amount": 6, "source": OWNER, "destination": PEGOUT}
    key = scene.find("tgbtc_new_key_fallback").columns
    assert (key["source"], key["destination_secondary"]) == (BRIDGE, PEGOUT)
    assert key["extra"] == {"pubkey": f"{0xAB:064x}"}


def test_a_torn_log_is_none(scene: Scene) -> None:
    scene.external(BRIDGE).send(None, Cell(tgbtc.MINT_LOG).coins(5))
    assert [action.type for action in scene.classify()] == ["unknown"]
