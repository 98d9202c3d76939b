"""Fuzzes the native and the Python decoder with damaged blocks and bags; they must agree.

``make fuzz`` builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer and runs
this with it: any finding ends the process, as does any disagreement. Bags are compared one by one:
validity, and the hash of the root. Blocks that the extension accepts are compared with the
reference, row for row; blocks that it declines are left to the reference anyway: a sample of them
is decoded to count those that the reference accepts.
"""

import argparse
import time
from collections import Counter
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from tests.fuzz.bag import BagRun
from tests.fuzz.seeds import read_corpus
from tests.ingest.decode.block.test_fuzz import spoil_cells
from tests.ingest.decode.cell.test_fuzz import mutate
from tests.ingest.decode.native.samples import check_equal, wrap
from tonlake.ingest.blocks import McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_in_python
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import ORDINARY
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, IngestError
from tonlake.lake.account import MASTERCHAIN

CHECK_DECLINED = 16
"""Every n-th declined case goes through the reference."""
TOGETHER = 100
"""Accepted blocks that are compared in one call: their rows meet in one order."""
BLOCK_EVERY = 20
"""Every n-th case is a block; the others are bags, which take a fraction of the time."""
REPORT_EVERY_S = 30


def load(path: Path) -> Any:
    """Load the extension from a file."""
    name = "tonlake.ingest.decode._core"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Seed(NamedTuple):
    """A block of the corpus, one of its bags, and the bytes of cell data in that bag."""

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
    """Return the places of cell data below no Merkle cell: all may change freely."""
    tree = parse_boc(bag)
    free = {0}
    for cell in range(tree.count):
        if cell in free and tree.kind(cell) == ORDINARY:
            free |= set(tree.links[cell])
    width = bag[4] & 7
    sizes = [len(tree.cells[cell]) + width * len(tree.links[cell]) for cell in range(tree.count)]
    ends = accumulate(sizes, initial=len(bag) - sum(sizes))
    return [
        place
        for cell, start in zip(range(tree.count), ends, strict=False)
        if cell in free and tree.kind(cell) == ORDINARY
        for place in range(start + 2, start + len(tree.cells[cell]))
    ]


def _flip(seed: Seed, choices: Random) -> bytes:
    """Change bits in data, which keeps the shape of the cells."""
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


class Run:
    """Pending blocks: accepted ones are compared many blocks at a time."""

    def __init__(self, name: str, versions: dict[int, int], *, all_named: bool) -> None:
        """Take blocks that a masterchain block names, or all others; ``versions`` by key block."""
        self.outcomes: Counter[str] = Counter()
        self._name = name
        self._versions = versions
        self._all_named = all_named
        self._accepted: list[McBundle] = []
        self._declined = 0

    def add(self, bundle: McBundle) -> None:
        """Run one case; raises AssertionError on a disagreement, with the block in hex."""
        bundle = msgspec.structs.replace(bundle, versions=self._versions)
        if self._decode([bundle]) is not None:
            self._count("accepted")
            self._accepted.append(bundle)
            if len(self._accepted) == TOGETHER:
                self.finish()
            return
        self._declined += 1
        if self._declined % CHECK_DECLINED:
            self._count("declined, not checked")
        else:
            self._count(f"declined, {self._compare(bundle)} by the reference")

    def finish(self) -> None:
        """Compare the blocks accepted since the last call."""
        if not self._accepted:
            return
        try:
            mine = self._decode(self._accepted)
            assert mine is not None
            check_equal(mine, self._refer(self._accepted))
        except (AssertionError, IngestError):
            for bundle in self._accepted:
                assert self._compare(bundle) == "accepted", bundle.blocks[0].data.hex()
            raise
        self._accepted = []

    def _count(self, outcome: str) -> None:
        self.outcomes[f"{self._name}, {outcome}"] += 1

    def _decode(self, bundles: list[McBundle]) -> dict[str, pa.Table] | None:
        blocks = [(raw, bundle.mc_seqno) for bundle in bundles for raw in bundle.blocks]
        count, tables = native.decode_natively(blocks, self._versions, all_named=self._all_named)
        return tables if count == len(blocks) else None

    def _refer(self, bundles: list[McBundle]) -> dict[str, pa.Table]:
        tops = {bundle.blocks[0].id for bundle in bundles} if self._all_named else ()
        return decode_in_python(bundles, tops)

    def _compare(self, bundle: McBundle) -> str:
        mine = self._decode([bundle])
        shown = f"{bundle.blocks[0].id}: {bundle.blocks[0].data.hex()}"
        try:
            expected = self._refer([bundle])
        except IngestError:
            assert mine is None, shown
            return "rejected"
        if mine is not None:
            try:
                check_equal(mine, expected)
            except AssertionError as error:
                raise AssertionError(shown) from error
        return "accepted"


def run(cases: int, seed: int) -> Counter[str]:
    """Run ``cases`` cases; raises AssertionError on a disagreement."""
    choices = Random(seed)  # noqa: S311 - repeatable, no secret
    seeds = _list_seeds()
    bags = BagRun([origin.raw for origin in seeds], choices)
    headers = (read_header(parse_boc(origin.raw.data, check_crc=False)) for origin in seeds)
    keys = sorted({header.prev_key_block_seqno for header in headers})
    named = Run("named blocks", {}, all_named=True)
    alone = Run("blocks", {key: choices.choice((11, 12)) for key in keys}, all_named=False)
    reported = time.monotonic()
    for case in range(cases):
        if case % BLOCK_EVERY:
            bags.step()
        else:
            origin = choices.choice(seeds)
            bag = _spoil(origin, choices)
            if origin.raw.id.workchain != MASTERCHAIN and choices.randrange(2):
                named.add(wrap(bag, origin.raw, bytes(32)))
            else:
                root_hash = native._extension.root_hash(bag)
                alone.add(wrap(bag, origin.raw, root_hash or bytes(32)))
        if time.monotonic() - reported > REPORT_EVERY_S:
            reported = time.monotonic()
            outcomes = bags.outcomes + named.outcomes + alone.outcomes
            print(f"{case + 1:,} cases: {dict(outcomes)}", flush=True)  # noqa: T201
    named.finish()
    alone.finish()
    return bags.outcomes + named.outcomes + alone.outcomes


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
