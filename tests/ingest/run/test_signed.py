"""Signed blocks are decoded before their masterchain block, whatever the node's pipe brings."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from tests.ingest.run.test_follow import SETTINGS, Watched, check, write
from tests.ingest.simulator.chain import displace
from tests.ingest.simulator.node import BLOCK_SIGNED, SimulatedNode
from tests.patience import vary
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.run import follow
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.following import CONFIRMED_FILE, read_confirmed
from tonlake.lake.log.state import read_state

LAST = 150
"""After it each masterchain block commits a block in both shards."""


class Piped:
    """A node with a pipe, and its follower."""

    def __init__(
        self, folder: Path, node: SimulatedNode, written: list[McBundle], **ingest: bool
    ) -> None:
        for bundle in written:
            node.write(bundle)
        self.node, self.lake = node, folder / "lake"
        self._pipe = folder / "events"
        os.mkfifo(self._pipe)
        self._settings = vary(SETTINGS, follow={"event_pipe": str(self._pipe)}, ingest=ingest)
        self.start()
        assert self.tell() == self.tell() == set()

    def start(self) -> None:
        self.follower = Watched(self.node.db_dir, self.lake, self._settings)
        self.follower._wakeup.wait(0)
        self._end = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)

    def tell(self, *events: bytes) -> set[tuple[int, int]]:
        """Send events, and return shard and seqno of the signed blocks that were read."""
        for event in events:
            os.write(self._end, event)
        self.follower._wakeup.wait(0)
        self.follower.step()
        return {(one.shard, one.seqno) for one in self.follower._signed._held}

    def close(self) -> None:
        os.close(self._end)
        self.follower.close()


def list_shards(*bundles: McBundle) -> set[tuple[int, int]]:
    return {(one.id.shard, one.id.seqno) for bundle in bundles for one in bundle.blocks[1:]}


@pytest.fixture
def piped(tmp_path: Path, bundles: list[McBundle]) -> Iterator[Piped]:
    with (
        closing(SimulatedNode(tmp_path / "db")) as node,
        closing(Piped(tmp_path, node, bundles[:LAST])) as made,
    ):
        yield made


def test_blocks_come_as_they_are_signed_and_go_as_they_are_committed(
    piped: Piped, bundles: list[McBundle], tmp_path: Path
) -> None:
    """The lake is the same as without them."""
    for bundle in bundles[LAST : LAST + 3]:
        left, right = bundle.blocks[1:]
        assert piped.tell(piped.node.sign(left)) == {(left.id.shard, left.id.seqno)}
        assert piped.tell(piped.node.sign(right)) == list_shards(bundle)
        expected = decode_bundle(msgspec.structs.replace(bundle, blocks=(left, right)))
        commit, tables = read_confirmed(piped.lake)
        assert commit == read_state(piped.lake).number
        for name in ("blocks", "transactions", "messages", "account_states"):
            assert tables[name].equals(expected[name])
        assert tables["transaction_traces"].num_rows == tables["transactions"].num_rows
        write(piped.node, bundles, bundle.mc_seqno)
        assert piped.tell() == set()
        assert not (piped.lake / CONFIRMED_FILE).exists()
    assert not piped.follower.notices
    check(piped.lake, bundles[: LAST + 3], tmp_path)


def test_a_block_waits_for_the_blocks_that_it_follows(
    piped: Piped, bundles: list[McBundle]
) -> None:
    first, second = bundles[LAST : LAST + 2]
    later = [piped.node.sign(block) for block in second.blocks[1:]]
    assert piped.tell(*later) == set()
    events = [piped.node.sign(block) for block in first.blocks[1:]]
    assert piped.tell(*events) == list_shards(first, second)
    early = displace(second.blocks[1], second.blocks[0].id, second.blocks[1].id)
    assert piped.tell(piped.node.sign(early)) == list_shards(first, second)
    write(piped.node, bundles, second.mc_seqno)
    assert piped.tell() == {(early.id.shard, early.id.seqno)}, "its masterchain block was missing"


def test_what_the_pipe_brings_beside(piped: Piped, bundles: list[McBundle]) -> None:
    """Other events, torn and unknown ones, and far more than are waited for."""
    bundle = bundles[LAST]
    left, right = (piped.node.sign(block) for block in bundle.blocks[1:])
    applied = bytes.fromhex("5b82c864") + right[4:]
    nonsense = b"".join(BLOCK_SIGNED + at.to_bytes(80, "little") for at in range(700))
    master = BLOCK_SIGNED + b"\xff" * 80
    with mock.patch.object(follow, "WAIT_S", 0.0):
        assert piped.tell(b"???", applied, nonsense[:-3], b"", left[:50]) == set()
    assert len(piped.follower._signed._due) == 0
    assert piped.tell(left[50:], master) == {(bundle.blocks[1].id.shard, bundle.blocks[1].id.seqno)}
    assert piped.tell(right, right) == list_shards(bundle)
    assert not piped.follower.notices


def test_wrong_bytes_are_refused(piped: Piped, bundles: list[McBundle]) -> None:
    left, right = bundles[LAST].blocks[1:]
    broken = msgspec.structs.replace(left, data=left.data[:-1] + b"?")
    expected = {(right.id.shard, right.id.seqno)}
    assert piped.tell(piped.node.sign(broken), piped.node.sign(right)) == expected
    (notice,) = piped.follower.notices
    assert "the SHA-256 of the" in notice


def test_other_blocks_are_committed_in_their_place(piped: Piped, bundles: list[McBundle]) -> None:
    before, bundle = bundles[LAST - 1 : LAST + 1]
    other = displace(bundles[LAST + 5].blocks[1], before.blocks[0].id, before.blocks[1].id)
    assert piped.tell(piped.node.sign(other)) == {(other.id.shard, other.id.seqno)}
    assert not list(find_damage(piped.lake, read_state(piped.lake).files, trust_earlier=False))
    piped.close()
    piped.start()
    assert piped.tell() == set(), "another follower begins without signed blocks"
    assert piped.tell(piped.node.sign(other)) != set()
    write(piped.node, bundles, bundle.mc_seqno)
    assert piped.tell() == set()
    assert not piped.follower._signed.has_blocks
