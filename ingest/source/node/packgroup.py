"""Groups packages of the same masterchain blocks: one for all shards, or one per shard prefix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.errors import BlockCorrupt, EntryFlaw
from tonlake.ingest.source.node.package import PackageScan, read_block_entry
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NAME = re.compile(r"(?<!key\.)(?<!temp\.)archive\.(\d{5,})(?:\.-?\d+[:_][0-9a-f]{16})?\.pack")


def list_packages(folder: Path) -> dict[int, list[Path]]:
    """Return the archive packages under ``folder`` by number, their first masterchain block.

    Temporary packages, which have blocks that never became canonical, and copies of key blocks
    are left out. File names may have a prefix before the name that the node uses.
    """
    found: dict[int, list[Path]] = {}
    for path in sorted(folder.rglob("*.pack")):
        match = _NAME.search(path.name)
        if match and match.end() == len(path.name):
            found.setdefault(int(match[1]), []).append(path)
    return dict(sorted(found.items()))


def find_newest_mc_block(folder: Path) -> int:
    """Return the newest masterchain seqno in the packages under ``folder``; 0 if there is none."""
    for number, paths in reversed(list_packages(folder).items()):
        group = PackGroup(folder, number)
        group.refresh(path for path in paths if path.stem.count(".") == 1)
        if group.mc_blocks:
            return max(group.mc_blocks)
    return 0


class PackGroup:
    """The packages with one number, scanned, and their blocks by id and by seqno."""

    def __init__(self, folder: Path, number: int) -> None:
        """Start without files; ``refresh`` adds them."""
        self.folder = folder
        self.number = number
        self._scans: dict[Path, PackageScan] = {}
        self.mc_blocks: dict[int, list[BlockId]] = {}

    def refresh(self, paths: Iterable[Path]) -> bool:
        """Read new entries of the files; return whether anything changed."""
        for path in paths:
            if path not in self._scans:
                self._scans[path] = PackageScan(path, str(path.relative_to(self.folder)))
        changed = [scan.advance() for scan in self._scans.values()]
        if any(changed):
            self.mc_blocks = self._index_mc_blocks()
        return any(changed)

    def find_flaw(self) -> EntryFlaw | None:
        """Return the most serious flaw of the files, or None; damage precedes truncation."""
        found = [flaw for scan in self._scans.values() for flaw in scan.flaws]
        tails = [scan.tail for scan in self._scans.values() if scan.tail is not None]
        return min([*found, *tails], key=lambda flaw: flaw.cut, default=None)

    def read_block(self, block_id: BlockId) -> RawBlock | None:
        """Return a block; None if no file has it. Raise BlockCorrupt if all copies are damaged."""
        flaw: EntryFlaw | None = None
        for scan in self._scans.values():
            place = scan.blocks.get(block_id)
            if place is None:
                continue
            try:
                return RawBlock(block_id, read_block_entry(place, block_id))
            except EntryFlaw as error:
                flaw = error
        if flaw is None:
            return None
        raise BlockCorrupt(
            flaw.reason, block=block_id, file=flaw.file, offset=flaw.offset
        ) from flaw

    def _index_mc_blocks(self) -> dict[int, list[BlockId]]:
        found = {one for scan in self._scans.values() for one in scan.blocks}
        by_seqno: dict[int, list[BlockId]] = {}
        for block_id in sorted(found):
            if block_id.workchain == MASTERCHAIN:
                by_seqno.setdefault(block_id.seqno, []).append(block_id)
        return by_seqno
