"""Reads blocks from archive packages without any index.

Shard blocks are found by the ids in ``ShardHashes`` and ``prev``: from the tops that a masterchain
block is first to name, back to the tops of the previous masterchain block.
"""

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from tonlake.ingest.blocks import BlockId, BlockSource, McBundle, McHead, RawBlock, name_mc_block
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    BlockUnavailable,
    EntryFlaw,
    SourceError,
)
from tonlake.ingest.source.node.archive import (
    TopsCache,
    collect_committed,
    naming_corrupt,
    read_previous,
)
from tonlake.ingest.source.node.package import PackageScan, read_block_entry
from tonlake.lake.account import MASTERCHAIN

_NAME = re.compile(r"(?<!key\.)(?<!temp\.)archive\.(\d{5,})(?:\.-?\d+[:_][0-9a-f]{16})?\.pack")


def list_packages(folder: Path) -> dict[int, list[Path]]:
    """Return the archive packages under ``folder`` that are neither temporary nor of key blocks."""
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
        self.folder = folder
        self.number = number
        self._scans: dict[Path, PackageScan] = {}
        self.mc_blocks: dict[int, list[BlockId]] = {}
        self.newest_offset = 0
        """Where the newest masterchain block begins: damage in front of it hides no newer one."""

    def refresh(self, paths: Iterable[Path]) -> bool:
        """Read new entries of the files; return whether anything changed."""
        for path in paths:
            if path not in self._scans:
                self._scans[path] = PackageScan(path, str(path.relative_to(self.folder)))
        changed = [scan.advance() for scan in self._scans.values()]
        if any(changed):
            self.mc_blocks = {}
            places = {one: at for scan in self._scans.values() for one, at in scan.blocks.items()}
            for block_id in sorted(places):
                if block_id.workchain == MASTERCHAIN:
                    self.mc_blocks.setdefault(block_id.seqno, []).append(block_id)
                    self.newest_offset = places[block_id].offset
        return any(changed)

    def find_flaw(self, after: int = 0) -> EntryFlaw | None:
        """Return the most serious flaw from an offset on, or None; damage precedes truncation."""
        flaws = (flaw for scan in self._scans.values() for flaw in scan.flaws)
        found = [flaw for flaw in flaws if flaw.offset >= after]
        tails = [scan.tail for scan in self._scans.values() if scan.tail is not None]
        return min([*found, *tails], key=lambda flaw: flaw.cut, default=None)

    def read_block(self, block_id: BlockId) -> RawBlock | None:
        """Return a block; None if no file has it. Raise BlockCorrupt if all copies are damaged."""
        flaw: EntryFlaw | None = None
        for scan in self._scans.values():
            try:
                if (place := scan.blocks.get(block_id)) is not None:
                    return RawBlock(block_id, read_block_entry(place, block_id))
            except EntryFlaw as error:
                flaw = error
        if flaw is None:
            return None
        with naming_corrupt(block_id):
            raise flaw


OPEN_INDEXES = 4
"""Maximum number of slices or package groups of a node kept open."""


class PackSource(BlockSource):
    """The blocks of the archive packages under a folder; follows growing files."""

    def __init__(self, folder: Path, *, open_groups: int = OPEN_INDEXES) -> None:
        """List the packages; each is read on first use. Keep at most ``open_groups`` in memory."""
        self.folder = folder
        self._limit = open_groups
        self._groups: OrderedDict[int, PackGroup] = OrderedDict()
        self._tops = TopsCache()
        self._last: int | None = None
        self._files = list_packages(folder)
        if not self._files:
            raise SourceError(f"{folder} holds no archive packages (archive.<number>.pack)")

    def refresh(self) -> None:
        """Look for new packages, and for new entries in those already read."""
        self._files = list_packages(self.folder)
        for number, group in list(self._groups.items()):
            group.refresh(self._files.get(number, ()))
        self._tops.clear()
        self._last = None

    def first_mc_seqno(self) -> int:
        """Return the oldest masterchain block that is present with its shard blocks."""
        reason: BlockUnavailable | None = None
        for number in list(self._files):
            for mc_seqno in sorted(self._open_group(number).mc_blocks):
                try:
                    self.read_bundle(mc_seqno)
                except (BlockNeverHad, BlockNotYet) as error:
                    reason = reason or error
                except BlockUnavailable:
                    return mc_seqno
                else:
                    return mc_seqno
        raise SourceError(f"no masterchain block is present with its shard blocks: {reason}")

    def last_mc_seqno(self) -> int:
        """Return the newest masterchain block; damaged ones count, else damage would be hidden."""
        if self._last is None:
            groups = map(self._open_group, list(reversed(self._files)))
            last = next((max(group.mc_blocks) for group in groups if group.mc_blocks), 0)
            newest = self._open_group(next(reversed(self._files)))
            flaw = newest.find_flaw(newest.newest_offset)
            self._last = last + 1 if flaw is not None and not flaw.cut else last
        return self._last

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return one masterchain block and the shard blocks it commits."""
        group = self._find_group(mc_seqno)
        mc_block = self._read_mc_block(group, mc_seqno)
        tops = self._tops.read(mc_block)
        earlier = self._read_earlier_tops(group, mc_seqno)
        blocks: dict[BlockId, RawBlock] = {}

        def find_prev(block_id: BlockId) -> tuple[BlockId, ...] | None:
            if earlier is not None and block_id in earlier:
                return None
            block = group.read_block(block_id)
            if block is None:
                if earlier is None and block_id not in tops.new:
                    return None
                raise self._missing(group, block_id, mc_seqno)
            blocks[block_id] = block
            return read_previous(block)

        committed = collect_committed(tops.new, find_prev)
        shards = (blocks[block_id] for block_id in committed)
        return McBundle(mc_seqno, (mc_block, *shards), tops.mark)

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the packages' masterchain block at a seqno; None if there is none."""
        try:
            block = self._read_mc_block(self._find_group(mc_seqno), mc_seqno)
        except BlockUnavailable:
            return None
        gen_utime = read_header(parse_boc(block.data)).gen_utime
        return McHead(mc_seqno, block.id.root_hash, gen_utime)

    def describe(self) -> dict[str, str]:
        """Return the fingerprint for the commit log: the numbers of the packages."""
        numbers = list(self._files)
        return {
            "kind": "packs",
            "first_package": str(numbers[0]),
            "last_package": str(numbers[-1]),
            "files": str(sum(map(len, self._files.values()))),
        }

    def close(self) -> None:
        """Drop what was read; files are open only while they are read."""
        self._groups.clear()
        self._tops.clear()

    def _open_group(self, number: int) -> PackGroup:
        group = self._groups.pop(number, None)
        if group is None:
            group = PackGroup(self.folder, number)
            group.refresh(self._files[number])
        self._groups[number] = group
        while len(self._groups) > self._limit:
            self._groups.popitem(last=False)
        return group

    def _find_group(self, mc_seqno: int) -> PackGroup:
        numbers = list(self._files)
        place = bisect_right(numbers, mc_seqno)
        if mc_seqno <= 0 or not place:
            reason = f"the packages begin with number {numbers[0]}"
            raise BlockNeverHad(reason, block=name_mc_block(mc_seqno))
        return self._open_group(numbers[place - 1])

    def _read_mc_block(self, group: PackGroup, mc_seqno: int) -> RawBlock:
        ids = group.mc_blocks.get(mc_seqno, [])
        if len(ids) > 1:
            reason = "the packages hold two different blocks with this seqno"
            raise BlockCorrupt(reason, block=name_mc_block(mc_seqno))
        block = group.read_block(ids[0]) if ids else None
        if block is None:
            raise self._missing(group, name_mc_block(mc_seqno), mc_seqno)
        return block

    def _read_earlier_tops(self, group: PackGroup, mc_seqno: int) -> AbstractSet[BlockId] | None:
        """Return all shard tops before a masterchain block; None if the packages begin with it."""
        before = mc_seqno - 1
        if before == 0:
            return frozenset()
        if before in self._tops:
            return self._tops[before].committed_by.keys()
        try:
            block = self._read_mc_block(self._find_group(before), before)
            return self._tops.read(block).committed_by.keys()
        except BlockUnavailable as error:
            if group.number == mc_seqno:
                return None
            reason = f"its shard blocks are unknown without the block before it. {error}"
            raise type(error)(reason, block=name_mc_block(mc_seqno)) from error

    def _missing(self, group: PackGroup, block_id: BlockId, mc_seqno: int) -> BlockUnavailable:
        flaw = group.find_flaw()
        is_newest = group.number == next(reversed(self._files))
        is_inside = block_id.workchain == MASTERCHAIN and mc_seqno < max(group.mc_blocks, default=0)
        if flaw is not None and not (flaw.cut and is_inside):
            kind = BlockNotYet if flaw.cut and is_newest else BlockCorrupt
            reason = f"not found; {flaw.reason}"
            return kind(reason, block=block_id, file=flaw.file, offset=flaw.offset)
        where = f"packages {group.number}"
        if is_newest and mc_seqno >= max(group.mc_blocks, default=0):
            is_shard = block_id.workchain != MASTERCHAIN
            names_it = f"masterchain block {mc_seqno} commits it, but " if is_shard else ""
            reason = f"{names_it}the packages end before it"
            return BlockNotYet(reason, block=block_id, file=where)
        return BlockNeverHad("the packages do not hold it", block=block_id, file=where)
