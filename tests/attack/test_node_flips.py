"""Bits flipped in a node's packages: the same rows, or an ingest that reports what is missing."""

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.damage import flip_bit
from tests.patience import compose
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.command.ingest import read_range
from tonlake.ingest.errors import IngestError
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.package import ENTRY_HEADER, FILE_HEADER_BYTES
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.log.state import read_state

TEMPORARY_SHARE = 3
"""Of this many flips, one is in temporary packages."""

SEED = 41

INDEX = "archive/packages/arch0000/archive.00000.index"
SHORT_BYTES = 198
SETTINGS = compose(ingest={"detect_contracts": False, "classify_actions": False})

Files = frozenset[tuple[str, int, str]]


class Entry(NamedTuple):
    """The place of an entry in a package: head, data and end, as bytes of the file."""

    head: int
    data: int
    end: int
    kind: bytes


def list_entries(data: bytes) -> Iterator[Entry]:
    at = FILE_HEADER_BYTES
    while at < len(data):
        _magic, name_bytes, data_bytes = ENTRY_HEADER.unpack_from(data, at)
        start = at + ENTRY_HEADER.size + name_bytes
        name = data[at + ENTRY_HEADER.size : start]
        yield Entry(at, start, start + data_bytes, name.partition(b"_")[0])
        at = start + data_bytes


def ingest_all(db_dir: Path, lake: Path, span: str) -> Files | None:
    """Return the files of a new lake; None if the ingest reports that something is missing."""
    try:
        with closing(open_node(db_dir, proofs=True)) as source:
            report = bring(source, lake, span)
    except IngestError:
        return None
    if report:
        return None
    return frozenset((file.path, file.rows, file.sha256) for file in read_state(lake).files)


def bring(source: BlockSource, lake: Path, span: str) -> bool:
    """Ingest; return whether a hole or a stop was reported."""
    report = ingest(source, lake, read_range(source, span), SETTINGS)
    return bool(report.holes) or report.stopped_at is not None


def choose_bits(data: bytes, kinds: tuple[bytes, ...], rng: random.Random) -> Iterator[int]:
    """Yield bits, alternating between any data, a proof, and the head or name of an entry."""
    entries = [entry for entry in list_entries(data) if entry.kind in kinds]
    proofs = [entry for entry in entries if entry.kind.startswith(b"proof")]
    while True:
        yield rng.randrange(len(data) * 8)
        for entry, end in ((rng.choice(proofs), "end"), (rng.choice(entries), "data")):
            start = entry.data if end == "end" else entry.head
            yield rng.randrange(start * 8, getattr(entry, end) * 8)


def flip_bits(
    db_dir: Path, paths: list[Path], count: int, folder: Path, span: str
) -> tuple[int, int]:
    """Flip bits of packages, one at a time; return how many were reported, and the others."""
    rng = random.Random(SEED)  # noqa: S311 - a repeatable choice
    sound = ingest_all(db_dir, folder / "sound", span)
    assert sound
    kinds = (b"block", b"proof", b"prooflink")
    contents = {path: path.read_bytes() for path in paths}
    bits = {path: choose_bits(data, kinds, rng) for path, data in contents.items()}
    reported = 0
    for number in range(count):
        path = paths[number % len(paths)]
        bit = next(bits[path])
        path.write_bytes(flip_bit(contents[path], bit))
        found = ingest_all(db_dir, folder / "lake", span)
        shutil.rmtree(folder / "lake", ignore_errors=True)
        path.write_bytes(contents[path])
        assert found in (None, sound), f"silent: bit {bit} of {path.name}"
        reported += found is None
    assert ingest_all(db_dir, folder / "after", span) == sound
    return reported, count - reported


def flip_node(demo_node: Path, folder: Path, flips: int, span: str) -> tuple[int, int]:
    """Flip bits of both kinds of packages; return how many were reported, and the others."""
    db_dir = folder / "db"
    shutil.copytree(demo_node, db_dir)
    archive = sorted((db_dir / "archive/packages/arch0000").glob("archive.*.pack"))
    in_temporary = flips // TEMPORARY_SHARE
    (folder / "archive").mkdir()
    in_archive = flip_bits(db_dir, archive, flips - in_temporary, folder / "archive", span)
    (manifest,) = (db_dir / INDEX).glob("MANIFEST-*")
    os.truncate(manifest, SHORT_BYTES)
    temporary = sorted((db_dir / "files/packages").glob("*.pack"))[-1:]
    (folder / "temporary").mkdir()
    behind = flip_bits(db_dir, temporary, in_temporary, folder / "temporary", span)
    return in_archive[0] + behind[0], in_archive[1] + behind[1]


@pytest.mark.parametrize(
    ("flips", "span", "least"),
    [(6, "100:140", 1), pytest.param(300, ":", 76, marks=[pytest.mark.attack, pytest.mark.long])],
)
def test_flipped_bits_in_packages(
    demo_node: Path, tmp_path: Path, flips: int, span: str, least: int
) -> None:
    """Some blocks of both halves of the archive that ends at 118, or all of them."""
    reported, others = flip_node(demo_node, tmp_path, flips, span)
    print(f"\n{reported} flips reported, {others} without effect, 0 silent")  # noqa: T201
    assert reported >= least
