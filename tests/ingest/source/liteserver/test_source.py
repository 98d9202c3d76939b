"""Blocks from lite servers over the real protocol equal those of the node's folder."""

import base64
import hashlib
import ipaddress
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from nacl.signing import SigningKey

from tests.commands import run
from tests.conftest import unpack
from tests.crash.test_ingest_kills import list_live
from tests.ingest.source.liteserver.conftest import LAST
from tests.ingest.source.liteserver.server import Chain, SimulatedServer, make_chain
from tests.patience import compose
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.proof import KEY_TAG, SIGNED_TAG, Validator, check_signatures
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    DecodeError,
    ServerFault,
    ServerRefusal,
    SourceError,
)
from tonlake.ingest.run import follow
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import LiteServerSettings
from tonlake.ingest.source.liteserver import source as sources
from tonlake.ingest.source.liteserver.config import GlobalConfig, read_config
from tonlake.ingest.source.liteserver.source import WINDOW_MC_BLOCKS, LiteSource
from tonlake.ingest.source.node.archive import read_previous
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake.log.state import read_state

SETTINGS = compose(
    liteserver={"poll_ms": 0}, ingest={"detect_contracts": False}, lake={"build_index": False}
)


@contextmanager
def opened(*servers: SimulatedServer, proofs: bool = False) -> Iterator[LiteSource]:
    """Open the servers, which listen until the block ends; with proofs from the zero state on."""
    zero = servers[0].chain.zero_states[0]
    known = BlockId(-1, -(1 << 63), 0, zero.root_hash, zero.file_hash) if proofs else None
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server.run())
        config = GlobalConfig(tuple(server.address for server in servers), known, None)
        settings = LiteServerSettings(poll_ms=0, proofs=proofs)
        yield stack.enter_context(closing(LiteSource(config, settings)))


def show(bundle: McBundle) -> list[tuple[BlockId, bytes]]:
    return [(block.id, block.data) for block in bundle.blocks]


def test_bundles_are_those_of_the_node(chain: Chain, bundles: list[McBundle]) -> None:
    with opened(SimulatedServer(chain)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, LAST)
        found = [source.read_bundle(mc_seqno) for mc_seqno in range(1, LAST + 1)]
        assert list(map(show, found)) == list(map(show, bundles))
        assert show(source.read_bundle(7)) == show(bundles[6])
        assert source.zero_states() == chain.zero_states


def test_the_lake_is_that_of_the_node(chain: Chain, demo_node: Path, tmp_path: Path) -> None:
    span = Span(1, LAST)
    with closing(open_node(demo_node)) as source:
        ingest(source, tmp_path / "node", span, SETTINGS)
    with opened(SimulatedServer(chain), SimulatedServer(chain)) as source:
        report = ingest(source, tmp_path / "lite", span, SETTINGS)
    assert (report.holes, report.stopped_at) == ([], None)
    theirs, ours = list_live(tmp_path / "node"), list_live(tmp_path / "lite")
    assert ours == theirs
    assert len(ours) > 10


def test_connections_that_are_cut(chain: Chain, bundles: list[McBundle]) -> None:
    """A server that disconnects after every few answers is reconnected; another one helps out."""
    shaky, steady = SimulatedServer(chain), SimulatedServer(chain)
    shaky.drop_after = 3
    with opened(shaky, steady) as source:
        found = [source.read_bundle(mc_seqno) for mc_seqno in range(1, LAST + 1)]
    assert list(map(show, found)) == list(map(show, bundles))


def test_wrong_bytes(chain: Chain, bundles: list[McBundle]) -> None:
    """A wrong block is recognized by its hash, and requested from another server."""
    wrong = SimulatedServer(chain)
    target = bundles[19].blocks[-1]
    wrong.swapped = {target.id: bundles[20].blocks[-1].data}
    with opened(wrong) as source:
        with pytest.raises(
            BlockCorrupt, match=r"SHA-256 of the bytes sent .* is not its file hash"
        ):
            source.read_bundle(20)
        assert show(source.read_bundle(19)) == show(bundles[18])
        assert show(source.read_bundle(21)) == show(bundles[20])
    with opened(wrong, SimulatedServer(chain)) as source:
        assert show(source.read_bundle(20)) == show(bundles[19])


def test_a_masterchain_block_with_two_predecessors(chain: Chain, bundles: list[McBundle]) -> None:
    """Only a server that makes up a chain has one: it must not end the ingest."""

    def merge(raw: RawBlock) -> tuple[BlockId, ...]:
        return read_previous(raw) * (1 + (raw.id in {block.id for block in bundles[9].blocks}))

    with (
        mock.patch.object(sources, "read_previous", merge),
        opened(SimulatedServer(chain)) as source,
    ):
        with pytest.raises(BlockCorrupt, match="merges no shards"):
            source.read_bundle(10)
        assert show(source.read_bundle(9)) == show(bundles[8])


def test_a_block_that_is_unknown(chain: Chain, bundles: list[McBundle]) -> None:
    server = SimulatedServer(chain)
    server.unknown = {bundles[9].blocks[-1].id}
    with opened(server) as source:
        with pytest.raises(BlockNeverHad, match="no lite server has it"):
            source.read_bundle(10)
        assert show(source.read_bundle(11)) == show(bundles[10])
        with pytest.raises(BlockNotYet, match=f"up to {LAST}"):
            source.read_bundle(LAST + 1)


def test_a_server_that_keeps_few_blocks(chain: Chain, bundles: list[McBundle]) -> None:
    server = SimulatedServer(chain)
    server.first = 20
    with opened(server) as source:
        # The previous block determines which shard blocks are new.
        assert source.first_mc_seqno() == 21
        assert source.find_head(19) is None
        with pytest.raises(BlockNeverHad, match="are unknown without the block before it"):
            source.read_bundle(20)
        assert show(source.read_bundle(21)) == show(bundles[20])


def test_a_server_that_is_behind(chain: Chain, bundles: list[McBundle]) -> None:
    """The newest block of any server counts, and is requested from a server that has it."""
    behind, ahead = SimulatedServer(chain), SimulatedServer(chain)
    behind.last = 10
    with opened(behind) as source:
        assert source.last_mc_seqno() == 10
        with pytest.raises(BlockNotYet):
            source.read_bundle(11)
        behind.last = 11
        source.refresh()
        assert show(source.read_bundle(11)) == show(bundles[10])
    with opened(behind, ahead) as source:
        assert source.last_mc_seqno() == LAST
        assert show(source.read_bundle(LAST)) == show(bundles[LAST - 1])


def test_servers_that_do_not_answer(chain: Chain, bundles: list[McBundle]) -> None:
    silent, steady = SimulatedServer(chain), SimulatedServer(chain)
    silent.is_silent = True
    with (
        mock.patch.object(sources, "TIMEOUT_MS", 50),
        pytest.raises(ServerFault, match="no lite server can be used"),
        opened(silent),
    ):
        pass
    silent.is_silent = False
    with mock.patch.object(sources, "TIMEOUT_MS", 60_000), opened(silent, steady) as source:
        silent.is_silent = True
        source._queries.connections[0]._timeout_s = 0.05
        assert show(source.read_bundle(5)) == show(bundles[4])
        asked = steady.asked.count("getMasterchainInfo")
        source.refresh()
        assert steady.asked.count("getMasterchainInfo") == asked + 1


def test_servers_that_refuse(chain: Chain) -> None:
    busy = SimulatedServer(chain)
    with opened(busy) as source:
        busy.refusal = 228, "rate limit"
        with pytest.raises(ServerRefusal, match="refuses with code 228: rate limit"):
            source.read_bundle(3)
        busy.refusal, busy.raw_answer = None, b"\0" * 12
        with pytest.raises(ServerFault, match="it answers nothing, not liteServer"):
            source.refresh()


def test_another_network(chain: Chain, bundles: list[McBundle]) -> None:
    other = BlockId(-1, -(1 << 63), 0, b"x" * 32, b"y" * 32)
    with SimulatedServer(chain).run() as server:
        with pytest.raises(SourceError, match="another network"):
            LiteSource(GlobalConfig((server.address,), other, None), LiteServerSettings())
        known = BlockId(-1, -(1 << 63), 12, b"x" * 32, b"y" * 32)
        config = GlobalConfig((server.address,), None, known)
        with closing(LiteSource(config, LiteServerSettings())) as source:
            with pytest.raises(SourceError, match="another chain"):
                source.read_bundle(13)
            assert show(source.read_bundle(LAST)) == show(bundles[LAST - 1])


def test_heads(chain: Chain, bundles: list[McBundle]) -> None:
    with opened(SimulatedServer(chain)) as source:
        for mc_seqno in (1, 17, LAST, LAST):
            head = source.find_head(mc_seqno)
            assert head is not None
            assert (head.mc_seqno, head.root_hash) == (
                mc_seqno,
                bundles[mc_seqno - 1].blocks[0].id.root_hash,
            )
            assert head.gen_utime is not None
        assert source.find_head(LAST + 1) is None
        assert source.describe()["kind"] == "liteserver"


def test_windows_are_asked_for_ahead(chain: Chain) -> None:
    """Reading in order requests every block once, and not all at a time."""
    server = SimulatedServer(chain)
    with opened(server) as source:
        source.read_bundle(1)
        for mc_seqno in range(2, LAST + 1):
            source.read_bundle(mc_seqno)
    blocks = len(chain.blocks)
    seams = LAST // WINDOW_MC_BLOCKS
    assert server.asked.count("getBlock") == blocks + seams


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
        done = run("ingest", *command, span, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["committed"] == [f"{last - 5}:{last - 1}"]
        done = run("ingest", *command, f"--range={last - 2}:")
        assert f"from {last}:{last} to {last}:{last}" in done.stdout
    done = run("ingest", *command)
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
        ({"liteservers": [{"ip": 1, "port": 2, "id": {"key": "AAAA"}}]}, "length >= 32"),
        ({"liteservers": [{"ip": 1, "port": 2, "id": {"key": "?"}}]}, "Invalid base64"),
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


TARGET = BlockId(-1, -(1 << 63), 7, b"r" * 32, b"f" * 32)


def test_genuine_signatures(chain: Chain, bundles: list[McBundle]) -> None:
    server = SimulatedServer(chain)
    with opened(server, proofs=True) as source:
        for mc_seqno in range(1, LAST + 1):
            block = source.read_bundle(mc_seqno).blocks[0]
            assert block.data == bundles[mc_seqno - 1].blocks[0].data
        assert server.asked.count("getBlockProof") == 2


def test_signatures_of_simplex(newest_node: Path) -> None:
    """A proven chain of Simplex blocks; a changed part of what was signed is refused."""
    with closing(open_node(newest_node, proofs=True)) as node:
        bundles = [node.read_bundle(mc_seqno) for mc_seqno in range(1, LAST + 1)]
        server = SimulatedServer(make_chain(bundles, node.zero_states()))
    with opened(server, proofs=True) as source:
        for bundle in bundles:
            assert source.read_bundle(bundle.mc_seqno).blocks[0].data == bundle.blocks[0].data
    changes: list[tuple[str, Any, str]] = [
        ("session_id", "00" * 32, "is wrong"),
        ("slot", 7_000_000, "is wrong"),
        ("candidate", b"\0" * 160, "unknown form"),
        ("cc_seqno", 99, "another validator set"),
        ("validator_set_hash", 1, "another validator set"),
        ("signatures", [], "not by two thirds"),
    ]
    for name, value, reason in changes:
        assert_refused(server, name, value, reason)


@pytest.mark.parametrize("name", ["catchain_seqno", "validator_set_hash"])
def test_another_validator_set_is_refused(chain: Chain, name: str) -> None:
    assert_refused(SimulatedServer(chain), name, 12345, "another validator set")


def assert_refused(server: SimulatedServer, name: str, value: object, reason: str) -> None:
    """Check that signatures with a changed field are refused, with the reason."""
    server.altered = lambda _kind, answer: answer | {name: value}
    with opened(server, proofs=True) as source, pytest.raises(ServerFault, match=reason):
        source.read_bundle(5)


@pytest.mark.long
def test_key_blocks_lead_on(shared: Path, tmp_path: Path) -> None:
    """The validators of a network that re-elects them: each key block names the next ones."""
    db_dir = unpack(shared / "node" / "localnet-db.tar.zst", tmp_path)
    with closing(open_node(db_dir, proofs=True)) as node:
        first, last = node.first_mc_seqno(), node.last_mc_seqno()
        bundles = [node.read_bundle(mc_seqno) for mc_seqno in range(first, last + 1)]
        chain = make_chain(bundles, node.zero_states())
    assert chain.key_seqnos
    server = SimulatedServer(chain)
    with opened(server, proofs=True) as source:
        for bundle in (bundles[last - first - 20], bundles[-1]):
            found = source.read_bundle(bundle.mc_seqno)
            assert [block.data for block in found.blocks] == [block.data for block in bundle.blocks]
        key_block = source._key_block
        assert key_block is not None
        assert key_block.seqno == max(chain.key_seqnos)


def test_blocks_without_signatures(chain: Chain, bundles: list[McBundle]) -> None:
    """Unproven blocks are refused, and taken from a server that can prove them."""
    server = SimulatedServer(chain)
    server.signatures = 0
    with opened(server, proofs=True) as source:
        with pytest.raises(ServerFault, match="not by two thirds"):
            source.read_bundle(5)
        server.signatures = None
        server.proof_answer = None, (651, "no proof")
        with pytest.raises(ServerRefusal, match="no proof"):
            source.read_bundle(5)
        ends: dict[str, Any] = {"id": None, "complete": True, "steps": []}
        hashes = {"root_hash": "00" * 32, "file_hash": "00" * 32}
        shown = {"workchain": -1, "shard": -(1 << 63), "seqno": 1, **hashes}
        server.proof_answer = "partialBlockProof", ends | {"from": shown, "to": shown}
        with pytest.raises(ServerFault, match="does not lead on"):
            source.read_bundle(5)
    with opened(server, SimulatedServer(chain), proofs=True) as source:
        assert source.read_bundle(5).blocks[0].data == bundles[4].blocks[0].data


def test_there_must_be_something_to_prove_by(chain: Chain) -> None:
    with SimulatedServer(chain).run() as server:
        config = GlobalConfig((server.address,), None, None)
        with pytest.raises(SourceError, match="no init_block"):
            LiteSource(config, LiteServerSettings(proofs=True))


def sign(*keys: SigningKey) -> list[tuple[bytes, bytes]]:
    message = SIGNED_TAG + TARGET.root_hash + TARGET.file_hash
    ids = (hashlib.sha256(KEY_TAG + bytes(key.verify_key)).digest() for key in keys)
    return [(one, key.sign(message).signature) for one, key in zip(ids, keys, strict=True)]


def test_two_thirds_by_weight() -> None:
    keys = [SigningKey(bytes((number,)) * 32) for number in range(4)]
    weights = (4, 3, 2, 3)
    listed = [
        Validator(bytes(key.verify_key), weight) for key, weight in zip(keys, weights, strict=True)
    ]
    check_signatures(TARGET, listed, sign(keys[0], keys[1], keys[2]))
    for few in (sign(), sign(keys[0], keys[1]), sign(keys[1], keys[2], keys[3])):
        with pytest.raises(DecodeError, match="not by two thirds"):
            check_signatures(TARGET, listed, few)
    with pytest.raises(DecodeError, match="not one of its validators"):
        check_signatures(TARGET, listed, sign(keys[0], keys[0], keys[1], keys[2]))
    with pytest.raises(DecodeError, match="not one of its validators"):
        check_signatures(TARGET, listed[:3], sign(keys[3]))
    (first, signature), *others = sign(*keys)
    damaged = bytes((signature[0] ^ 1,)) + signature[1:]
    for wrong in (damaged, signature[:-1], b""):
        with pytest.raises(DecodeError, match="is wrong"):
            check_signatures(TARGET, listed, [(first, wrong), *others])
