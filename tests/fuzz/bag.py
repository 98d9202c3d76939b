"""Fuzzes both bag-of-cells readers with damaged bags: they must agree on validity and hash."""

from collections import Counter
from collections.abc import Iterable
from random import Random

from tests.damage import flip
from tests.ingest.decode.cell.test_fuzz import list_seeds, mutate
from tonlake.ingest.blocks import McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_in_python
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError

__all__ = ["BagRun"]

MAX_BYTES = 600
"""Larger bags take longer and show nothing else."""
HEAD_BYTES = 11
"""Length of the shortest head of a bag."""


def cut_bags(blocks: Iterable[RawBlock]) -> list[bytes]:
    """Return small bags of transactions, bodies and states from the blocks."""
    tables = decode_in_python([McBundle(1, (raw,)) for raw in blocks])
    columns = (("transactions", "boc"), ("messages", "body"), ("messages", "init_state"))
    found = {bag for table, name in columns for bag in tables[table][name].to_pylist() if bag}
    return sorted(bag for bag in found if len(bag) <= MAX_BYTES)


class BagRun:
    """Cases on bags; ``outcomes`` counts their results."""

    def __init__(self, blocks: Iterable[RawBlock], choices: Random) -> None:
        """Take seeds of every form, and those from the blocks."""
        self.outcomes: Counter[str] = Counter()
        self._seeds = [*list_seeds(), *cut_bags(blocks)]
        self._choices = choices

    def _flip(self, seed: bytes) -> bytes:
        """Change a bit behind the head: mostly in data, so that the bag stays valid."""
        return flip(
            seed, self._choices.randrange(HEAD_BYTES, len(seed)), 1 << self._choices.randrange(8)
        )

    def step(self) -> None:
        """Run one case; raises AssertionError on a disagreement, with the bag in hex."""
        seed = self._choices.choice(self._seeds)
        bag = mutate(seed, self._choices) if self._choices.randrange(2) else self._flip(seed)
        mine = native._extension.root_hash(bag)
        try:
            tree = parse_boc(bag, check_crc=False)
            expected = tree.hash(tree.roots[0]) if len(tree.roots) == 1 else None
        except BocError:
            expected = None
        assert mine == expected, bag.hex()
        self.outcomes["bags, rejected by both" if mine is None else "bags, read by both"] += 1
