"""Blocks from lite servers over the real protocol equal those of the node's folder."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from unittest import mock

import pytest

from tests.ingest.source.liteserver.conftest import LAST
from tests.ingest.source.liteserver.server import Chain, SimulatedServer
from tests.patience import compose
from tonlake.ingest.blocks import BlockId, McBundle
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    ServerFault,
    ServerRefusal,
    SourceError,
)
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import LiteServerSettings
from tonlake.ingest.source.liteserver import source as sources
from tonlake.ingest.source.liteserver.config import NetworkConfig
from tonlake.ingest.source.liteserver.source import WINDOW_MC_BLOCKS, LiteSource
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

SETTINGS = compose(
    liteserver={"poll_ms": 0}, ingest={"detect_contracts": False}, lake={"build_index": False}
)


@contextmanager
def opened(*servers: SimulatedServer, poll_ms: int = 0) -> Iterator[LiteSource]:
    """Open the servers, which listen until the block ends."""
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server.run())
        config = NetworkConfig(tuple(server.address for server in servers), None, None)
        settings = LiteServerSettings(poll_ms=poll_ms)
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


def read_lake(lake_dir: Path) -> dict[str, list[str]]:
    """Return all rows of a lake by table, in a fixed order."""
    snapshot = open_snapshot(lake_dir)
    with closing(connect(snapshot, SETTINGS.lake)) as connection:
        return {
            name: sorted(map(repr, connection.execute(f"from {name}").fetchall()))
            for name in snapshot.files
        }


def test_the_lake_is_that_of_the_node(chain: Chain, demo_node: Path, tmp_path: Path) -> None:
    span = Span(1, LAST)
    with closing(open_node(demo_node)) as source:
        ingest(source, tmp_path / "node", span, SETTINGS)
    with opened(SimulatedServer(chain), SimulatedServer(chain)) as source:
        report = ingest(source, tmp_path / "lite", span, SETTINGS)
    assert (report.holes, report.stopped_at) == ([], None)
    theirs, ours = read_lake(tmp_path / "node"), read_lake(tmp_path / "lite")
    assert ours == theirs
    assert len(ours["transactions"]) > 100


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
        source._pool.connections[0]._timeout_s = 0.05
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
            LiteSource(NetworkConfig((server.address,), other, None), LiteServerSettings())
        known = BlockId(-1, -(1 << 63), 12, b"x" * 32, b"y" * 32)
        config = NetworkConfig((server.address,), None, known)
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
