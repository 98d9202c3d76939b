"""Reads blocks from archive packages without any index.

Shard blocks are found by the ids in ``ShardHashes`` and ``prev``: from the tops that a masterchain
block is first to name, back to the tops of the previous masterchain block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING

from tonlake.ingest.blocks import BlockId, McBundle, McHead, RawBlock, ZeroState
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockNotYet,
    BlockUnavailable,
    SourceError,
)
from tonlake.ingest.source.node.bundle import TopsCache, collect_committed, read_previous
from tonlake.ingest.source.node.handle import name_mc_block
from tonlake.ingest.source.node.packgroup import PackGroup, list_packages
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

OPEN_INDEXES = 4
"""Maximum number of slices or package groups of a node kept open."""


class PackSource:
    """The blocks of the archive packages under a folder; follows growing files."""

    def __init__(self, folder: Path, *, open_groups: int = OPEN_INDEXES) -> None:
        """List the packages; each is read on first use. Keep at most ``open_groups`` in memory.

        Raises:
            SourceError: the folder has no packages.
        """
        self.folder = folder
        self._limit = open_groups
        self._groups: OrderedDict[int, PackGroup] = OrderedDict()
        self._tops = TopsCache()
        self._last: int | None = None
        self._files = list_packages(folder)
        if not self._files:
            raise SourceError("the folder holds no archive packages (archive.<number>.pack)")

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
        """Return the newest masterchain block that is not cut off at the end of the packages.

        A block with wrong bytes or without its shard blocks counts as present, and so does one
        after damage at the end: skipping them would hide the damage.
        """
        if self._last is None:
            groups = map(self._open_group, list(reversed(self._files)))
            last = next((max(group.mc_blocks) for group in groups if group.mc_blocks), 0)
            flaw = self._open_group(next(reversed(self._files))).find_flaw()
            self._last = last + 1 if flaw is not None and not flaw.cut else last
        return self._last

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return one masterchain block and the shard blocks it commits.

        Raises:
            BlockNotYet: after the end of the newest packages, or cut off there.
            BlockNeverHad: not in the packages, or the previous masterchain block, which
                determines its shard blocks, is not.
            BlockCorrupt: the bytes are wrong, or lost after wrong bytes.
        """
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

    read_unchecked = read_bundle

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the packages' masterchain block at a seqno; None if there is none."""
        try:
            block = self._read_mc_block(self._find_group(mc_seqno), mc_seqno)
        except BlockUnavailable:
            return None
        gen_utime = read_header(parse_boc(block.data)).gen_utime
        return McHead(mc_seqno, block.id.root_hash, gen_utime)

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return an empty tuple: packages contain no states."""
        return ()

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
        """Return all shard tops before a masterchain block.

        None if the previous block is missing and the packages begin with this one: then this block
        or a later one commits every block in them.
        """
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
        """Return the error for a block committed by ``mc_seqno`` that should be in ``group``."""
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
