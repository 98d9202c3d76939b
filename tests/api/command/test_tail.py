"""The follower process of the server: it is restarted when it dies, and ends on request."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.commands import run, serving
from tests.patience import wait_for
from tonlake.lake.log.following import Following, Lag, find_lateness, measure_lag, write_following
from tonlake.lake.log.state import LogState

GIVE_UP_S = 240.0
"""Only so that a fault does not hang the suite."""


def test_the_whole_product_in_one_command(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    env = os.environ | {"TONLAKE_INGEST_DETECT_CONTRACTS": "false"}
    words = ("--lake", lake, "--node", demo_node, "--follow")
    with serving(*words, env=env) as (base, server):

        def read_ready() -> dict[str, Any] | None:
            answer = httpx.get(f"{base}/readyz", timeout=GIVE_UP_S)
            found: dict[str, Any] = answer.json()
            assert answer.status_code == (503 if "error" in found else 200)
            return found if found.get("lag", {}).get("last_mc_seqno") == 238 else None

        def read_pid() -> int | None:
            try:
                return int(json.loads((lake / "_follow.json").read_bytes())["pid"])
            except FileNotFoundError:
                return None

        ready = wait_for(read_ready)
        assert ready["lag"]["node_last_mc_seqno"] == 238
        assert ready["lag"]["holes"] == 0
        first = read_pid()
        assert first is not None
        os.kill(first, signal.SIGKILL)
        second = wait_for(lambda: (pid := read_pid()) != first and pid)
        assert read_ready() is not None
        environment = Path(f"/proc/{second}/environ").read_bytes().split(b"\0")
        assert b"ARROW_DEFAULT_MEMORY_POOL=system" in environment
        server.send_signal(signal.SIGTERM)
        assert server.wait(GIVE_UP_S) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(second, 0)


def test_node_and_follow_go_together(tmp_path: Path) -> None:
    for extra in (["--follow"], ["--node", str(tmp_path)]):
        done = run("serve", "--lake", tmp_path, *extra)
        assert done.exit_code == 2


def test_lag_is_of_the_chain_and_of_the_last_look(tmp_path: Path) -> None:
    lake = LogState(1, ranges=((1, 10), (13, 20)))
    assert measure_lag(tmp_path, lake) == Lag(20, 2)
    note = Following(1, 1000.0, 25, 20, 995, 980)
    write_following(tmp_path, note)
    lag = measure_lag(tmp_path, lake, now_s=1002.5)
    assert lag == Lag(20, 2, lag_s=17.5, block_age_s=22.5, node_last_mc_seqno=25)
    assert measure_lag(tmp_path, lake, now_s=10.0).lag_s == 15.0
    assert find_lateness(lag, 17, followed=False) == (
        "the lake is 18 s behind its node, and 17 are allowed: it has masterchain block 20 of 25"
    )
    assert find_lateness(lag, 18, followed=True) is None
    assert find_lateness(lag, 0, followed=True) is None
    assert find_lateness(Lag(20, 0), 5, followed=False) is None
    assert find_lateness(Lag(20, 0), 5, followed=True) is not None
    write_following(tmp_path, Following(1, 1000.0, stopped=True))
    assert measure_lag(tmp_path, lake).lag_s is None
