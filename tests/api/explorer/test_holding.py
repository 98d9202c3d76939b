"""What the tokens of an account are worth."""

from pathlib import Path

from tests.api.explorer.market import build_scene, open_service
from tests.api.explorer.test_pages import Page
from tests.api.v3.scene import make_raw


def test_tons_and_jettons_have_a_value(tmp_path: Path) -> None:
    scene = build_scene()
    scene.put_state("wallets", "ann", 1, kind="wallet_v4r2")
    scene.rows["account_states"][-1]["balance"] = 1_500_000_000
    scene.rows["account_states"][-1]["extra_currencies"] = '{"239":"8000"}'
    scene.put_state("jetton_wallets", "purse", 1, owner="ann", jetton="dollar", balance=6_000_000)
    with open_service(scene.commit(tmp_path / "lake")) as client:
        page = Page(client.get(f"/account/{make_raw('ann')}?show=tokens").text)
        assert "CAT" in Page(client.get("/jettons").text).words.partition("Symbol")[2]
    assert "TON1.5 TON1.504.50" in "".join(page.words.splitlines())
    assert "extra currency 2398,000unknownunknown" in "".join(page.words.splitlines())
    assert "6 DOLLAR2.006.00" in "".join(page.words.splitlines())
