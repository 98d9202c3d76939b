"""A follower reads a node's temporary packages before their blocks are archived."""

import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import cast

from tests.ingest.source.node.nodewriter import NodeWriter, open_store
from tests.patience import compose
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.log.state import read_state

SETTINGS = compose(
    ingest={"detect_contracts": False},
    follow={"patience_ms": 3_600_000, "shorter_ms": 0},
    lake={"maintenance_commits": 0},
)
INDEX = "archive/packages/arch0000/archive.00000.index"
TEMPORARY = "files/packages/temp.archive.1795237200.index"
CLIENT, WRITTEN, LAST = 130, 140, 238
HANDLE_BYTES = 84


def test_a_follower_reads_what_is_not_archived_yet(demo_node: Path, tmp_path: Path) -> None:
    db_dir, lake = tmp_path / "db", tmp_path / "lake"
    with closing(open_node(demo_node)) as source:
        client, newest = (source.read_bundle(seqno).blocks[0].id for seqno in (CLIENT, LAST))
        expected = source.find_head(LAST)
    shutil.copytree(demo_node, db_dir)
    (manifest,) = (db_dir / INDEX).glob("MANIFEST-*")
    os.truncate(manifest, 198)  # the archive ends with masterchain block 118
    writer = NodeWriter.__new__(NodeWriter)
    notices: list[str] = []
    with (
        closing(open_store(db_dir / "state")) as writer.state,
        closing(open_store(db_dir / TEMPORARY)) as index,
        closing(
            Follower(lambda: open_node(db_dir), lake, SETTINGS, notify=notices.append)
        ) as follower,
    ):
        writer.write_shard_client(client)
        later = {
            key: value
            for key, value in cast("Iterable[tuple[bytes, bytes]]", index.items())
            if len(key) == HANDLE_BYTES
            and key[4:8] == b"\xff" * 4
            and int.from_bytes(key[16:20], "little") > WRITTEN
        }
        for key in later:
            del index[key]
        follower.step()
        follower.step()
        assert read_state(lake).ranges == ((1, WRITTEN),)
        for key, value in later.items():
            index[key] = value
        follower.step()
        assert read_state(lake).ranges == ((1, LAST),)
        writer.write_shard_client(newest)
        follower.step()
        state = read_state(lake)
        assert (state.ranges, state.undoings) == (((1, LAST),), ())
        assert follower._newest is not None
        assert expected is not None
        assert follower._newest.root_hash == expected.root_hash
    assert notices == []
