"""Damaged blocks through the native decoder and the Python decoder, which must agree.

``make fuzz`` builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer and runs
this with it: what either finds ends the process, as any disagreement does. Whatever the extension
accepts is compared with the reference, row for row; of what it declines, a part is checked to be
refused by the reference, too, and counted where it is not.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from ingest import native
from ingest.block.block import decode_in_python
from ingest.cell.boc import parse_boc, serialize_boc
from ingest.cell.exotic import ORDINARY
from ingest.errors import BocError, IngestError
from tests.fuzz.corpus import read_corpus
from tests.ingest.block.test_fuzz import spoil_cells
from tests.ingest.cell.test_fuzz import mutate
from tests.ingest.native.samples import check_equal, compare, wrap

if TYPE_CHECKING:
    from ingest.source import McBundle, RawBlock

CHECK_DECLINED = 16
"""One of so many declined cases goes through the reference."""
TOGETHER = 100
"""Accepted blocks that are compared in one call: their rows meet in one order."""
REPORT_EVERY_S = 30


def load(path: Path) -> Any:
    """Load the extension from a file."""
    name = "ingest.native._core"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Seed(NamedTuple):
    """A block of the corpus, a bag of it, and the bytes in that which are data of a cell."""

    raw: RawBlock
    bag: bytes
    places: list[int]


def _list_seeds() -> list[Seed]:
    """Return each block as it is stored, and without the hashes stored in its cells."""
    seeds = []
    for raw in read_corpus():
        tree = parse_boc(raw.data, check_crc=False)
        bag = serialize_boc(tree, tree.roots)
        seeds += [
            Seed(raw, raw.data, list(range(16, len(raw.data)))),
            Seed(raw, bag, _list_places(bag)),
        ]
    return seeds


def _list_places(bag: bytes) -> list[int]:
    """Return the places of cell data that no Merkle cell covers: all may change freely."""
    tree = parse_boc(bag)
    free = {0}
    for cell in range(tree.count):
        if cell in free and tree.kind(cell) == ORDINARY:
            free |= set(tree.refs(cell))
    width = bag[4] & 7
    sizes = [len(tree.cells[cell]) + width * len(tree.refs(cell)) for cell in range(tree.count)]
    ends = accumulate(sizes, initial=len(bag) - sum(sizes))
    return [
        place
        for cell, start in zip(range(tree.count), ends, strict=False)
        if cell in free and tree.kind(cell) == ORDINARY
        for place in range(start + 2, start + len(tree.cells[cell]))
    ]


def _flip(seed: Seed, choices: Random) -> bytes:
    """Change bits in data, which leaves the shape of the cells as it is."""
    spoiled = bytearray(seed.bag)
    for _ in range(choices.randrange(1, 4)):
        spoiled[choices.choice(seed.places)] ^= 1 << choices.randrange(8)
    return bytes(spoiled)


def _spoil(seed: Seed, choices: Random) -> bytes:
    match choices.randrange(16):
        case 0 | 1:
            with suppress(BocError):
                tree = parse_boc(seed.bag, check_crc=False)
                return spoil_cells(tree, choices, places=choices.randrange(1, 4))
            return seed.bag
        case 2 | 3 | 4 | 5 | 6:
            return mutate(seed.bag, choices)
        case _:
            return _flip(seed, choices)


def _is_accepted(bundle: McBundle) -> bool:
    (raw,) = bundle.blocks
    name = raw.id
    hashes = (name.root_hash, name.file_hash)
    item = (raw.data, name.workchain, name.shard, name.seqno, *hashes, bundle.mc_seqno)
    count, _ = native._extension.decode([item], 1, native._portable)
    return bool(count)


class Run:
    """Cases on their way: what the extension accepts is compared many blocks at a time."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._accepted: list[McBundle] = []
        self._declined = 0

    def add(self, bundle: McBundle) -> None:
        """Take one case; raises AssertionError on a disagreement, with the block in hex."""
        if _is_accepted(bundle):
            self.outcomes["accepted"] += 1
            self._accepted.append(bundle)
            if len(self._accepted) == TOGETHER:
                self.finish()
            return
        self._declined += 1
        if self._declined % CHECK_DECLINED:
            self.outcomes["declined, not checked"] += 1
        else:
            self.outcomes[f"declined, {_compare(bundle)} by the reference"] += 1

    def finish(self) -> None:
        """Compare what was accepted since the last time."""
        try:
            expected = decode_in_python(self._accepted)
            check_equal(native.decode_bundles(self._accepted, decode_in_python), expected)
        except (AssertionError, IngestError):
            for bundle in self._accepted:
                assert _compare(bundle) == "accepted", bundle.blocks[0].data.hex()
            raise
        self._accepted = []


def _compare(bundle: McBundle) -> str:
    try:
        outcome = compare(bundle)
    except AssertionError as error:
        raise AssertionError(f"{bundle.blocks[0].id}: {bundle.blocks[0].data.hex()}") from error
    return "accepted" if outcome == "declined" else outcome


def run(cases: int, seed: int) -> Counter[str]:
    """Run ``cases`` cases; raises AssertionError on a disagreement."""
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    seeds = _list_seeds()
    run = Run()
    reported = time.monotonic()
    for case in range(cases):
        origin = choices.choice(seeds)
        bag = _spoil(origin, choices)
        root_hash = native._extension.root_hash(bag)
        run.add(wrap(bag, origin.raw, root_hash or bytes(32)))
        if time.monotonic() - reported > REPORT_EVERY_S:
            reported = time.monotonic()
            print(f"{case + 1:,} cases: {dict(run.outcomes)}", flush=True)  # noqa: T201
    run.finish()
    return run.outcomes


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--extension", type=Path, help="use the extension in this file")
    arguments = parser.parse_args()
    if arguments.extension:
        native._extension = load(arguments.extension)
    started = time.monotonic()
    outcomes = run(arguments.cases, arguments.seed)
    took = time.monotonic() - started
    print(f"{arguments.cases:,} cases in {took:.0f} s, 0 findings: {dict(outcomes)}")  # noqa: T201


if __name__ == "__main__":
    main()
