"""A lake that follows lite servers, run by the commands."""

import base64
import ipaddress
import json
import math
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from tests.ingest.source.liteserver.server import Chain, SimulatedServer
from tests.patience import compose
from tonlake.api.command.loading import compose_settings
from tonlake.ingest.command.ingest import ingest_command
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run import follow
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.source.liteserver.config import read_config
from tonlake.ingest.source.origin import Origin
from tonlake.lake.log.state import read_state


def write_config(path: Path, *servers: SimulatedServer, **changes: Any) -> Path:
    """Write the configuration file of a network with these servers."""
    zero = servers[0].chain.zero_states[0]
    block = {
        "workchain": -1,
        "shard": -(1 << 63),
        "seqno": 0,
        "root_hash": base64.b64encode(zero.root_hash).decode(),
        "file_hash": base64.b64encode(zero.file_hash).decode(),
    }
    listed = [
        {
            "ip": int(ipaddress.IPv4Address(server.address.host)),
            "port": server.address.port,
            "id": {"@type": "pub.ed25519", "key": base64.b64encode(server.address.key).decode()},
        }
        for server in servers
    ]
    validator = {"@type": "validator.config.global", "zero_state": block, "init_block": block}
    config = {"@type": "config.global", "liteservers": listed, "validator": validator} | changes
    path.write_text(json.dumps(config))
    return path


def test_a_range_by_command(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONLAKE_INGEST_DETECT_CONTRACTS", "false")
    monkeypatch.setenv("TONLAKE_LAKE_BUILD_INDEX", "false")
    monkeypatch.setenv("TONLAKE_INGEST_CLASSIFY_ACTIONS", "false")
    with SimulatedServer(chain).run() as server:
        config = write_config(tmp_path / "global.config.json", server)
        command = ["--liteserver", str(config), "--lake", str(tmp_path / "lake")]
        last = max(chain.masterchain)
        span = f"--range={last - 5}:{last - 1}"
        done = CliRunner().invoke(ingest_command, [*command, span, "--json"], obj=compose_settings)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["committed"] == [f"{last - 5}:{last - 1}"]
        done = CliRunner().invoke(
            ingest_command, [*command, f"--range={last - 2}:"], obj=compose_settings
        )
        assert f"from {last}:{last} to {last}:{last}" in done.stdout
    done = CliRunner().invoke(ingest_command, command, obj=compose_settings)
    assert done.exit_code == 1
    assert "no lite server can be used" in done.stderr


@mock.patch.object(follow, "HEAL_S", math.inf)
def test_the_chain_is_followed(chain: Chain, tmp_path: Path) -> None:
    """Block by block: disconnected servers and a lagging one leave no hole."""
    settings = compose(
        liteserver={"poll_ms": 0},
        ingest={"detect_contracts": False, "classify_actions": False},
        lake={"build_index": False},
    )
    ahead, behind = SimulatedServer(chain), SimulatedServer(chain)
    notices: list[str] = []
    with ahead.run(), behind.run():
        config = write_config(tmp_path / "global.config.json", ahead, behind)
        origin = Origin(liteserver=config)
        ahead.last, behind.last = 3, 2
        follower = Follower(
            lambda: origin.open(settings), tmp_path / "lake", settings, notify=notices.append
        )
        try:
            for last in range(3, 8):
                ahead.last, behind.last = last, last - 1
                ahead.drop_after = 7 if last % 3 == 0 else None
                while not read_ranges(tmp_path / "lake") or (
                    read_ranges(tmp_path / "lake")[-1][1] < last
                ):
                    follower.step()
                assert read_ranges(tmp_path / "lake") == ((1, last),)
        finally:
            follower.close()


def read_ranges(lake_dir: Path) -> tuple[tuple[int, int], ...]:
    if not (lake_dir / "_log").exists():
        return ()
    return read_state(lake_dir).ranges


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"liteservers": []}, "names no lite servers"),
        ({"liteservers": [{"ip": 1}]}, "not a global configuration of a network"),
        ({"liteservers": [{"ip": 1, "port": 2, "id": {"key": "AAAA"}}]}, "3 bytes, not 32"),
        ({"liteservers": [{"ip": 1, "port": 2, "id": {"key": "?"}}]}, "is not base64"),
    ],
)
def test_configurations(chain: Chain, tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    path = write_config(tmp_path / "config.json", SimulatedServer(chain))
    whole = read_config(path)
    assert whole.zero_state is not None
    assert whole.zero_state == whole.init_block
    assert whole.zero_state.root_hash == chain.zero_states[0].root_hash
    with pytest.raises(SourceError, match=text):
        read_config(write_config(path, SimulatedServer(chain), **changes))
    path.write_bytes(b"\xff{")
    with pytest.raises(SourceError, match="not a global configuration"):
        read_config(path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_config(tmp_path / "missing.json")


def test_addresses_are_signed(chain: Chain, tmp_path: Path) -> None:
    """Hosts from 128.0.0.0 on are negative numbers in these files."""
    key = base64.b64encode(bytes(32)).decode()
    listed = [{"ip": -1062731775, "port": 4924, "id": {"key": key}}]
    path = write_config(tmp_path / "config.json", SimulatedServer(chain), liteservers=listed)
    assert str(read_config(path).servers[0]) == "192.168.0.1:4924"
