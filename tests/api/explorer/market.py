"""A market of jettons: swaps whose prices are known."""

import json
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from tests.api.v3.scene import Scene, make_raw
from tests.patience import patient
from tonlake.api.app import create_app

DAY = 1_700_006_400 // 86_400 * 86_400
HOUR = DAY + 36_000
TRADES = {HOUR: (0.5, 0.52, 0.47), HOUR + 3600: (0.6, 0.55, 0.58), HOUR + 86_400: (0.7, 0.7, 0.7)}
"""TON for one cat, in the order of the trades of an hour."""


def put_swap(scene: Scene, utime: int, jetton: str, units: int) -> None:
    """Add a swap of 10 TON for some of a jetton."""
    number = len(scene.rows["dex_swaps"])
    scene.put(
        "dex_swaps",
        trace_id="trace",
        action_id=f"swap {number}",
        mc_seqno=1,
        end_lt=number,
        end_utime=utime,
        success=True,
        dex="dedust",
        pool=make_raw(f"pool of {jetton}"),
        amount_in=10**10,
        asset_out=make_raw(jetton),
        amount_out=units,
        hops=1,
    )


def build_scene(*, classified: bool = True) -> Scene:
    """Return a market of cats and dollars, both with six decimals."""
    scene = Scene(2)
    for block, utime in zip(scene.rows["blocks"], (DAY, DAY + 200_000), strict=True):
        block["gen_utime"] = utime
    for jetton in ("cat", "dollar"):
        content = json.dumps({"symbol": jetton.upper(), "decimals": "6"})
        scene.put_state("jetton_masters", jetton, 1, content=content, total_supply=1)
    scene.put("interfaces", code_hash="code of jetton_masters", mc_seqno=1)
    for hour, prices in TRADES.items():
        for at, price in enumerate(prices):
            put_swap(scene, hour + 60 * at, "cat", round(10 / price * 1e6))
        if hour == HOUR:
            for _ in range(3):
                put_swap(scene, hour, "dollar", 30_000_000)
    put_swap(scene, HOUR + 500, "cat", 1)  # ten TON for a millionth of a cat
    if classified:
        scene.put("action_ranges", first_mc_seqno=1, last_mc_seqno=2)
    return scene


def open_service(lake: Path) -> TestClient[Any]:
    settings = patient(lake={"stablecoins": make_raw("dollar")})
    return TestClient(create_app(lake, settings))
