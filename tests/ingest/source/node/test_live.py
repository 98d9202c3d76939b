"""A writing node is followed block by block, and a copy of it at any moment is readable."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockNotYet, SourceError
from tonlake.ingest.source.node.source import open_node

ROOT = Path(__file__).resolve().parents[4]
BLOCKS_FOLLOWED = 150
"""Behind a change of slice at 140 and the split of the shard at 110."""


@contextmanager
def writing_node(source: Path, target: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes a node's folder; it ends, killed, with the context."""
    command = [
        sys.executable,
        "-m",
        "tests.ingest.source.node.live_writer",
        str(source),
        str(target),
        "5",  # so slow that a reader on a busy machine looks many times
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # masterchain block 1 is complete
        yield process
        process.kill()


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
    with writing_node(demo_node, tmp_path / "db") as process:
        assert process.stdout is not None
        printed = [int(process.stdout.readline()) for _ in range(60)][-1]
        process.kill()
        process.wait()
    with closing(open_node(tmp_path / "db")) as source:
        last = source.last_mc_seqno()
        assert last >= printed
        assert [source.read_bundle(n) for n in range(1, last + 1)] == bundles[:last]


def test_copies_made_while_the_node_wrote_are_read(
    demo_node: Path, tmp_path: Path, bundles: list[McBundle]
) -> None:
    read = 0
    with writing_node(demo_node, tmp_path / "db") as process:
        assert process.stdout is not None
        for number in range(6):
            for _ in range(20):
                process.stdout.readline()
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
