"""Reads blocks after the archive's end: temporary packages in ``files/packages``, one an hour.

    temp.archive.<Unix time>.pack       blocks, proofs, signatures and candidates
    temp.archive.<Unix time>.index      RocksDB in the oldest layout of slices

They also have blocks that never became canonical. Up to the shard client the canonical ones are the
ancestors of its block; after it, each must follow the previous one and be signed by the validators.
A block counts as present if all shard blocks that it commits are.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from tonlake.ingest.blocks import BlockId, McBundle, McHead, RawBlock, name_mc_block
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockUnavailable, SourceError
from tonlake.ingest.source.node import tl
from tonlake.ingest.source.node.archive import (
    Archive,
    check_signed,
    collect_committed,
    naming_corrupt,
    read_block,
    read_previous,
    read_tops,
)
from tonlake.ingest.source.node.package import check_file_hash, read_candidate_entry
from tonlake.ingest.source.node.rocks import CURRENT, Scratch
from tonlake.ingest.source.node.slice import Slice

TEMPORARY_FOLDER = "files/packages"
FOLLOWED = 2
"""How many of the newest packages are written to; two at the turn of an hour."""

_INDEX = re.compile(r"temp\.archive\.(\d{1,10})\.index")


class TemporaryPackage(Slice):
    """A temporary package with its index; ``id`` is its Unix time."""

    def read_candidate(self, block_id: BlockId) -> bytes | None:
        """Return a block that is here as a candidate only, not verified; None if it is not.

        A ``candidateref`` is the db.candidate.id source:PublicKey id:tonNode.blockIdExt
        collated_data_file_hash:int256 of the db.candidate source:PublicKey id:tonNode.blockIdExt
        data:bytes collated_data:bytes.
        """
        place = self.locate(block_id, 0, tl.CANDIDATE_REF_KEY)
        if place is None:
            return None
        entry = read_candidate_entry(place, block_id, "candidateref")
        found = tl.TlReader(entry, "candidateref", tl.CANDIDATE_ID)
        file_key = tl.pack_constructor(tl.CANDIDATE_KEY) + found.data[found.position :]
        place = self.locate_file(file_key, block_id, 0)
        if place is None:
            return None
        entry = read_candidate_entry(place, block_id, "candidate")
        found = tl.TlReader(entry, "candidate", tl.CANDIDATE)
        found.read_bytes(tl.PUBLIC_KEY_BYTES + tl.BLOCK_ID_BYTES)
        return found.read_text()

    def _package_name(self, package: int, workchain: int, shard: int) -> str:
        del workchain, shard
        return f"{TEMPORARY_FOLDER}/temp.archive.{package}.pack"


class TemporaryPackages:
    """All temporary packages of a node, the newest first; unreadable ones are skipped."""

    def __init__(self, db_dir: Path, scratch: Scratch) -> None:
        self._db_dir = db_dir
        self._scratch = scratch
        self._open: dict[int, TemporaryPackage] = {}
        self._failed: set[int] = set()
        self._times: list[int] = []
        self._listed_ns: int | None = None

    def refresh(self) -> bool:
        """Catch up with open packages, close deleted ones; return whether anything changed."""
        times = self._list_times()
        changed = False
        for time in sorted(self._open, reverse=True):
            if time not in times:
                self._open.pop(time).close()
                changed = True
            elif time == times[0] or (changed and time in times[:FOLLOWED]):
                try:
                    changed |= self._open[time].catch_up()
                except SourceError:
                    self._open.pop(time).close()
                    changed = True
        return changed or any(time not in self._open.keys() | self._failed for time in times[:1])

    def retry(self) -> None:
        """Let the next iteration try again to open packages that failed to open."""
        self._failed.clear()

    def __iter__(self) -> Iterator[TemporaryPackage]:
        for time in self._list_times():
            if time in self._failed:
                continue
            if time not in self._open:
                name = f"{TEMPORARY_FOLDER}/temp.archive.{time}.index"
                try:
                    self._open[time] = TemporaryPackage(self._db_dir, time, name, self._scratch)
                except SourceError:
                    self._failed.add(time)
                    continue
            yield self._open[time]

    def close(self) -> None:
        """Close all packages."""
        while self._open:
            self._open.popitem()[1].close()

    def _list_times(self) -> list[int]:
        """Return the Unix times of the packages, newest first; list again if the folder changed."""
        folder = self._db_dir / TEMPORARY_FOLDER
        try:
            changed_ns = folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed_ns != self._listed_ns:
            found = (_INDEX.fullmatch(path.name) for path in folder.iterdir())
            times = sorted((int(match[1]) for match in found if match), reverse=True)
            # A rolled-back node leaves folders without files; a new folder gets its files in a
            # moment.
            self._times = [
                time for time in times if (folder / f"temp.archive.{time}.index" / CURRENT).exists()
            ]
            self._listed_ns = changed_ns if times == self._times else None
        return self._times


BUNDLES_KEPT = 4


class RecentBlocks:
    """Continues the archive with blocks that are only in temporary packages."""

    def __init__(self, db_dir: Path, scratch: Scratch, archive: Archive, *, proofs: bool) -> None:
        self._archive = archive
        self._packages = TemporaryPackages(db_dir, scratch)
        self._proofs = proofs
        self._ids: dict[int, BlockId] = {}
        self._open_bundle = lru_cache(BUNDLES_KEPT)(self._read_bundle)

    def refresh(self) -> bool:
        """Catch up with the node; return whether anything changed."""
        return self._packages.refresh()

    def close(self) -> None:
        """Close every store."""
        self._packages.close()

    def extend(self, last: int, client: BlockId | None) -> int:
        """Return the newest masterchain block that is present: ``last`` or a later one.

        ``last`` is the archive's newest block with all its shard blocks, ``client`` the shard
        client's block. A block with wrong bytes counts as present: reading it reports the flaw.
        """
        self._ids.clear()
        self._open_bundle.cache_clear()
        self._packages.retry()
        if client is not None and client.seqno > last:
            self._walk_back(client, last)
        while last + 1 in self._ids and self._is_there(last + 1):
            last += 1
        if client is None or last < client.seqno:
            return last
        while (block_id := self._find_next(last)) is not None:
            self._ids[last + 1] = block_id
            if not self._is_there(last + 1):
                del self._ids[last + 1]
                break
            last += 1
        return last

    def read_bundle(self, mc_seqno: int) -> McBundle | None:
        """Return a masterchain block with the shard blocks it commits; None if it is not known."""
        block_id = self._ids.get(mc_seqno)
        return None if block_id is None else self._open_bundle(block_id)

    def find_signed(self, block_id: BlockId) -> RawBlock | None:
        """Return a block, committed or not; None if there is none; BlockCorrupt if damaged."""
        for package in islice(self._packages, FOLLOWED):
            with suppress(BlockNeverHad):
                return read_block(package, block_id, 0)
            with naming_corrupt(block_id):
                data = package.read_candidate(block_id)
                if data is not None:
                    check_file_hash(data, block_id, file=package.store.name, offset=0)
                    return RawBlock(block_id, data)
        return None

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the masterchain block at a seqno; None if none is known."""
        block_id = self._ids.get(mc_seqno)
        if block_id is None:
            return None
        try:
            block = self._need(block_id, mc_seqno)
            gen_utime = read_header(parse_boc(block.data, check_crc=False)).gen_utime
        except BlockUnavailable:
            gen_utime = None
        return McHead(mc_seqno, block_id.root_hash, gen_utime)

    def _walk_back(self, client: BlockId, last: int) -> None:
        """Record the ids of the shard client's block and its ancestors, as far as present."""
        block_id = client
        while block_id.seqno > last:
            try:
                block = self._find(block_id)
                if block is None:
                    return
                self._ids[block_id.seqno] = block_id
                (block_id,) = read_previous(block)
            except BlockCorrupt:
                self._ids[block_id.seqno] = block_id
                return
        before = self._archive.find_head(last)
        if before is not None and before.root_hash != block_id.root_hash:
            self._ids.clear()  # two chains: neither continues the other

    def _find_next(self, last: int) -> BlockId | None:
        before = self._archive.find_head(last) or self.find_head(last)
        if before is None:
            return None
        damaged: BlockId | None = None
        for package in self._packages:
            for block_id in package.list_mc_ids(last + 1):
                try:
                    if self._follows(package, block_id, before.root_hash):
                        return block_id
                except BlockCorrupt:
                    damaged = block_id
                except BlockNeverHad:
                    continue
        return damaged

    def _follows(self, package: TemporaryPackage, block_id: BlockId, root_hash: bytes) -> bool:
        block = read_block(package, block_id, block_id.seqno, with_proof=True)
        if [one.root_hash for one in read_previous(block)] != [root_hash]:
            return False
        with naming_corrupt(block_id):
            tops = read_tops(block.data, block_id.seqno)
        return check_signed(package, block, self._archive.signers, tops.mark.before)

    def _is_there(self, mc_seqno: int) -> bool:
        try:
            return self.read_bundle(mc_seqno) is not None
        except BlockCorrupt:
            return True
        except (BlockUnavailable, SourceError):
            return False

    def _read_bundle(self, block_id: BlockId) -> McBundle:
        mc_seqno = block_id.seqno
        mc_block = self._need(block_id, mc_seqno)
        with naming_corrupt(block_id):
            tops = read_tops(mc_block.data, mc_seqno, with_extra=self._proofs)
            self._archive.signers.check(mc_block, tops.mark.before)
        earlier = self._tops_before(mc_seqno)
        blocks: dict[BlockId, RawBlock] = {}

        def find_prev(one: BlockId) -> tuple[BlockId, ...] | None:
            if one in earlier:
                return None
            blocks[one] = self._need(one, mc_seqno)
            return read_previous(blocks[one])

        committed = collect_committed(tops.new, find_prev)
        if mc_block.proof is not None:
            mc_block = msgspec.structs.replace(mc_block, mc_extra=tops.mc_extra)
        return McBundle(mc_seqno, (mc_block, *(blocks[one] for one in committed)), tops.mark)

    def _tops_before(self, mc_seqno: int) -> AbstractSet[BlockId]:
        before = self._ids.get(mc_seqno - 1)
        if before is None:
            found = self._archive.tops_before(mc_seqno)
            if found is None:
                reason = "its shard blocks are not known without the block before it"
                raise BlockNeverHad(reason, block=name_mc_block(mc_seqno), file=TEMPORARY_FOLDER)
            return found
        block = self._need(before, mc_seqno - 1)
        with naming_corrupt(before):
            return read_tops(block.data, mc_seqno - 1).committed_by.keys()

    def _need(self, block_id: BlockId, mc_seqno: int) -> RawBlock:
        block = self._find(block_id)
        if block is None:
            reason = f"masterchain block {mc_seqno} commits it, but it is in no package"
            raise BlockNeverHad(reason, block=block_id, file=TEMPORARY_FOLDER)
        return block

    def _find(self, block_id: BlockId) -> RawBlock | None:
        flaw: BlockCorrupt | None = None
        for package in self._packages:
            try:
                block = read_block(package, block_id, block_id.seqno, with_proof=True)
            except BlockNeverHad:
                continue
            except BlockCorrupt as error:
                flaw = error
            else:
                return block if self._proofs else msgspec.structs.replace(block, proof=None)
        if flaw is not None:
            raise flaw
        return None
