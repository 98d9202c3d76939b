"""A writing node is followed block by block, and a copy of it at any moment is readable."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.process import start
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockNotYet, SourceError
from tonlake.ingest.source.node.source import open_node

PAUSE_S = 0.005
"""So slow that a reader on a busy machine looks many times."""

BLOCKS_FOLLOWED = 150
"""Behind a change of slice at 140 and the split of the shard at 110."""


def write_all(calls: Connection, source_dir: Path, target: Path) -> None:
    """Write all blocks of a node again, with a full compaction now and then; send each number."""
    with closing(open_node(source_dir)) as source, closing(SimulatedNode(target)) as node:
        for mc_seqno in range(1, source.last_mc_seqno() + 1):
            node.write(source.read_bundle(mc_seqno))
            if mc_seqno % 10 == 0:
                node.compact()
            calls.send(mc_seqno)
            time.sleep(PAUSE_S)
        calls.recv()


@contextmanager
def writing_node(source: Path, target: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """Start a process that writes a node's folder; it ends, killed, with the context."""
    process, calls = start(write_all, source, target)
    calls.recv()  # masterchain block 1 is complete
    yield process, calls
    process.kill()
    process.join()


def copy_while_written(folder: Path, target: Path) -> Path:
    """Copy file by file as people do; files may vanish meanwhile."""
    for path in sorted(folder.rglob("*")):
        copied = target / path.relative_to(folder)
        try:
            if path.is_dir():
                copied.mkdir(parents=True, exist_ok=True)
            else:
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
        except FileNotFoundError:
            continue
    return target


def test_every_block_is_given_as_soon_as_it_is_complete(
    demo_node: Path, tmp_path: Path, bundles: list[McBundle]
) -> None:
    with (
        writing_node(demo_node, tmp_path / "db"),
        closing(open_node(tmp_path / "db", open_indexes=2)) as source,
    ):
        done, looks = 0, 0
        while done < BLOCKS_FOLLOWED:
            source.refresh()
            looks += 1
            for mc_seqno in range(done + 1, source.last_mc_seqno() + 1):
                assert source.read_bundle(mc_seqno) == bundles[mc_seqno - 1]
                done = mc_seqno
        assert looks > 20


def test_a_killed_node_is_read(demo_node: Path, tmp_path: Path, bundles: list[McBundle]) -> None:
    with writing_node(demo_node, tmp_path / "db") as (process, calls):
        written = [int(calls.recv()) for _ in range(60)][-1]
        process.kill()
        process.join()
    with closing(open_node(tmp_path / "db")) as source:
        last = source.last_mc_seqno()
        assert last >= written
        assert [source.read_bundle(n) for n in range(1, last + 1)] == bundles[:last]


def test_copies_made_while_the_node_wrote_are_read(
    demo_node: Path, tmp_path: Path, bundles: list[McBundle]
) -> None:
    read = 0
    with writing_node(demo_node, tmp_path / "db") as (_process, calls):
        for number in range(6):
            for _ in range(20):
                calls.recv()
            copy = copy_while_written(tmp_path / "db", tmp_path / f"copy{number}")
            # A table may be deleted between the copies of a manifest and of it: then that index
            # is named as damaged, and what was read before is right; a package that was copied
            # before its index is cut. So is what comes before
            # blocks that the shard client knows already, but not the archive.
            with (
                suppress(SourceError, BlockCorrupt, BlockNotYet, BlockNeverHad),
                closing(open_node(copy)) as source,
            ):
                for mc_seqno in range(1, source.last_mc_seqno() + 1):
                    assert source.read_bundle(mc_seqno) == bundles[mc_seqno - 1]
                    read += 1
    assert read
