"""One flipped bit in a node's RocksDBs: the same rows, or an error that says where; never others.

Flipping a bit of a file usually breaks a RocksDB checksum. A value that was wrong before it was
stored keeps a valid checksum: only redundant data in the node's folder can reveal it.
"""

import random
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from rocksdict import Rdict

from tests.damage import flip_bit
from tests.ingest.source.node.nodewriter import SHARD_CLIENT, NodeWriter
from tonlake.ingest.blocks import BlockId, McBundle
from tonlake.ingest.errors import BlockUnavailable, SourceError
from tonlake.ingest.source.node.source import open_node

BLOCKS, SLICES = 10, (0, 6)
FLUSHED_AFTER = (4, 8)
"""Masterchain blocks after which tables are written: later ones are in the log alone."""

SEED = 23
LOG_BLOCK, RECORD_HEAD = 1 << 15, 7
STORES = ("state", "files/globalindex", "archive/packages")


class Rows(NamedTuple):
    """The contents of a source: its range, and the blocks of every masterchain block in it."""

    first: int
    last: int
    blocks: tuple[tuple[BlockId, ...], ...]
    heads: tuple[bytes, ...]

    def cut(self, last: int) -> "Rows":
        """Return the rows up to a masterchain block, the one before the newest at least."""
        assert last >= self.last - 1
        count = last - self.first + 1
        return Rows(self.first, last, self.blocks[:count], self.heads[:count])


def read_node(db_dir: Path) -> Rows:
    with closing(open_node(db_dir)) as source:
        first, last = source.first_mc_seqno(), source.last_mc_seqno()
        bundles = [source.read_bundle(seqno) for seqno in range(first, last + 1)]
        heads = [source.find_head(seqno) for seqno in range(first, last + 1)]
        return Rows(
            first,
            last,
            tuple(tuple(block.id for block in bundle.blocks) for bundle in bundles),
            tuple(head.root_hash if head else b"" for head in heads),
        )


class Node:
    """A node with open stores, as in a running node."""

    def __init__(self, db_dir: Path, bundles: list[McBundle]) -> None:
        self.db_dir = db_dir
        self.writer = NodeWriter(db_dir, slices=SLICES)
        for number, bundle in enumerate(bundles, 1):
            self.writer.write_bundle(bundle)
            if number in FLUSHED_AFTER:
                for store in self.stores():
                    store.flush()
        self.sound = read_node(db_dir)

    def stores(self) -> list[Rdict]:
        return [self.writer.state, self.writer.index, *self.writer.open_slices.values()]

    def is_found(self, what: object, db_dir: Path | None = None, *, may_end: bool = False) -> bool:
        """Return whether a read is refused; else rows are the same, or fewer if it ``may_end``."""
        try:
            found = read_node(db_dir or self.db_dir)
        except (SourceError, BlockUnavailable) as error:
            said = str(error)
        else:
            sound = self.sound.cut(found.last) if may_end else self.sound
            assert found == sound, what
            return False
        assert any(name in said for name in STORES), (what, said)
        return True


@pytest.fixture(scope="module")
def node(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with closing(open_node(demo_node)) as source:
        bundles = [source.read_bundle(seqno) for seqno in range(1, BLOCKS + 1)]
    found = Node(tmp_path_factory.mktemp("node") / "db", bundles)
    yield found
    found.writer.close()


def choose_bits(size: int, count: int, rng: random.Random) -> list[int]:
    return sorted(rng.sample(range(size * 8), min(count, size * 8)))


def flip_value(node: Node, store: Rdict, key: bytes, bits: Iterable[int]) -> list[bool]:
    """Rewrite a value for each of the bits, with that bit flipped, and read the node."""
    sound, found = cast("bytes", store[key]), []
    try:
        for bit in bits:
            store[key] = flip_bit(sound, bit)
            found.append(node.is_found((key, bit)))
    finally:
        store[key] = sound
    return found


def kind_of(key: bytes) -> bytes:
    """Return the kind of a value: its constructor, a word, or that it is an offset."""
    return key[:4] if len(key) in {12, 14, 84} or len(key) != 64 else b"offset"


def flip_values(node: Node, each: int, *, max_of_a_kind: int | None) -> tuple[int, int]:
    """Flip bits of the values of all stores, and return how many were tried and found."""
    rng, found = random.Random(SEED), []  # noqa: S311 - a repeatable choice
    for store in node.stores():
        kinds: dict[bytes, list[bytes]] = {}
        for key in cast("list[bytes]", list(store.keys())):
            kinds.setdefault(kind_of(key), []).append(key)
        for keys in kinds.values():
            for key in rng.sample(keys, min(len(keys), max_of_a_kind or len(keys))):
                bits = choose_bits(len(cast("bytes", store[key])), each, rng)
                found += flip_value(node, store, key, bits)
    assert not node.is_found("nothing")
    return len(found), sum(found)


@pytest.mark.parametrize(
    ("each", "of_a_kind", "least"),
    [(1, 1, 0.0), pytest.param(8, None, 1 / 3, marks=pytest.mark.long)],
)
def test_bits_of_values(node: Node, each: int, of_a_kind: int | None, least: float) -> None:
    tried, found = flip_values(node, each, max_of_a_kind=of_a_kind)
    print(f"\n{tried} flips of values, {found} refused, the others without effect")  # noqa: T201
    assert tried * least < found < tried


def test_bits_of_the_node_s_progress(node: Node) -> None:
    """A reader that believed them would miss blocks; a follower would undo its own."""
    state = node.writer.state
    found = flip_value(node, state, find_key(state, SHARD_CLIENT), bits_of(4 + 12, 4))
    assert all(found), "too small or too great"
    first = bytes.fromhex("3e0304a5") + bytes(4)
    at = 20 + 12  # of two shards the masterchain's comes first
    flip_value(node, node.writer.index, find_key(node.writer.index, first), bits_of(at, 12, 3))
    time = bytes.fromhex("91e7e3f1ffffffff")
    for store in node.writer.open_slices.values():
        flip_value(node, store, find_key(store, time), [*bits_of(12, 4), (12 + 3) * 8 + 7])


def find_key(store: Rdict, beginning: bytes) -> bytes:
    keys = cast("list[bytes]", list(store.keys()))
    (found,) = (key for key in keys if key.startswith(beginning))
    return found


def bits_of(at: int, count: int, step: int = 1) -> range:
    """Return the first bits from a byte on."""
    return range(at * 8, at * 8 + count, step)


def find_last_record(log: bytes) -> int:
    """Return where the last record of a write-ahead log begins, which a wrong length may hide."""
    at, end = 0, 0
    while end < len(log):
        left = LOG_BLOCK - end % LOG_BLOCK
        if left < RECORD_HEAD:
            end += left
            continue
        at, end = end, end + RECORD_HEAD + int.from_bytes(log[end + 4 : end + 6], "little")
    return at


def flip_files(node: Node, folder: Path, each: int) -> dict[str, tuple[int, int]]:
    """Flip bits of every file of a copy's stores; return how many of each kind were found."""
    db_dir, rng = folder / "db", random.Random(SEED)  # noqa: S311 - a repeatable choice
    shutil.copytree(node.db_dir, db_dir)
    figures: dict[str, tuple[int, int]] = {}
    for path in sorted(db_dir.rglob("*")):
        kind = path.suffix or path.name.partition("-")[0]
        if not path.is_file() or kind not in {".sst", ".log", "MANIFEST", "CURRENT"}:
            continue
        sound = path.read_bytes()
        for bit in choose_bits(len(sound), each, rng):
            path.write_bytes(flip_bit(sound, bit))
            tried, found = figures.get(kind, (0, 0))
            what = (path.relative_to(db_dir), bit)
            may_end = kind == ".log" and bit // 8 >= find_last_record(sound)
            figures[kind] = tried + 1, found + node.is_found(what, db_dir, may_end=may_end)
        path.write_bytes(sound)
    assert not node.is_found("nothing", db_dir)
    return figures


@pytest.mark.parametrize(("each", "least"), [(1, 4), pytest.param(40, 200, marks=pytest.mark.long)])
def test_bits_of_files(node: Node, tmp_path: Path, each: int, least: int) -> None:
    figures = flip_files(node, tmp_path, each)
    print(f"\n{figures}: tried and refused, the others without effect")  # noqa: T201
    assert figures.keys() == {".sst", ".log", "MANIFEST", "CURRENT"}
    assert sum(tried for tried, _found in figures.values()) >= least
