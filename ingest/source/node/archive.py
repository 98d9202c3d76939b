"""Reads masterchain blocks and the shard blocks they commit from the archive of a node.

The index of a slice has the places of blocks, handles link them: from the shard tops that a
masterchain block names, back along ``prev``.
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from tonlake.ingest.blocks import BlockId, KeyMark, McBundle, McHead, RawBlock, name_mc_block
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import read_mark
from tonlake.ingest.decode.block.header import read_header, read_mc_extra, read_shard_tops
from tonlake.ingest.decode.block.proof import Signers, check_proof
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import copy_part
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockPruned,
    BlockUnavailable,
    BocError,
    DecodeError,
    EntryFlaw,
    SourceError,
)
from tonlake.ingest.source.node.package import (
    FILE_HEADER_BYTES,
    EntryPlace,
    read_block_entry,
    read_proof_entry,
)
from tonlake.ingest.source.node.slice import (
    GlobalIndex,
    Slice,
    SliceCache,
    SliceRecord,
    name_index,
    name_package_folder,
)
from tonlake.ingest.source.node.statefile import read_zero_block
from tonlake.lake.account import MASTERCHAIN


def make_missing_error(block_id: BlockId, mc_seqno: int, opened: Slice) -> BlockNeverHad:
    """Return the error for a block that a masterchain block commits, but no slice contains."""
    return BlockNeverHad(
        f"masterchain block {mc_seqno} commits it, but the node does not have it: the node does"
        " not monitor this shard, or its folder was not copied completely",
        block=block_id,
        file=opened.store.name,
    )


def read_block(
    opened: Slice,
    block_id: BlockId,
    mc_seqno: int,
    *,
    check_file: bool = True,
    with_proof: bool = False,
) -> RawBlock:
    """Return a block committed by ``mc_seqno``; ``check_file`` verifies its file hash.

    ``with_proof`` adds its proof, if the node has one.
    """
    with naming_corrupt(block_id):
        place = opened.locate(block_id, mc_seqno)
        if place is None:
            reason = "the index has a handle, but no offset for the block's data"
            raise BlockNeverHad(reason, block=block_id, file=opened.store.name)
        data, proof = read_block_entry(place, block_id, check_file=check_file), None
        place = opened.locate_proof(block_id, mc_seqno) if with_proof else None
        if place is not None:
            proof = read_proof_entry(place, block_id)
            if block_id.workchain != MASTERCHAIN:
                try:
                    check_proof(proof, block_id)
                except (BocError, DecodeError) as error:
                    raise _flaw_of_proof(place, error) from error
        return RawBlock(block_id, data, proof)


def check_signed(opened: Slice, block: RawBlock, signers: Signers, key_seqno: int) -> bool:
    """Verify the proof of a masterchain block, if any; return whether validators signed it."""
    try:
        return signers.check(block, key_seqno)
    except (BocError, DecodeError) as error:
        with naming_corrupt(block.id):
            place = opened.locate_proof(block.id, block.id.seqno)
            if place is not None:
                raise _flaw_of_proof(place, error) from error
        raise BlockCorrupt(str(error), block=block.id) from error


def _flaw_of_proof(place: EntryPlace, error: Exception) -> EntryFlaw:
    reason = f"the proof of the block is damaged: {error}"
    return EntryFlaw(reason, file=place.name, offset=FILE_HEADER_BYTES + place.offset)


class naming_corrupt:  # noqa: N801 - it reads as a function
    """Turn damage found while reading a block into a BlockCorrupt that names it."""

    __slots__ = ("_block",)

    def __init__(self, block: BlockId) -> None:
        self._block = block

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, EntryFlaw):
            raise BlockCorrupt(
                error.reason, block=self._block, file=error.file, offset=error.offset
            ) from error
        if isinstance(error, SourceError | BocError | DecodeError):
            raise BlockCorrupt(str(error), block=self._block) from error


def check_followers(
    opened: Slice, block_id: BlockId, committed: Iterable[BlockId], mc_seqno: int
) -> None:
    """Verify that the blocks whose handles name ``block_id`` as predecessor do follow it."""
    for follower in committed:
        handle = opened.find_handle(follower)
        if handle is None or block_id not in handle.prev:
            continue
        block = read_block(opened, follower, mc_seqno)
        if block_id not in read_header(parse_boc(block.data)).previous:
            raise SourceError(
                f"{opened.store.name}: the handle of {follower} says that it follows {block_id},"
                " but the block itself does not"
            )


class Tops(msgspec.Struct, frozen=True):
    """The shard tops that a masterchain block names, each with the seqno that committed it.

    ``new`` are the tops it commits itself, ``mark`` refers to configurations, ``mc_extra`` is
    the McBlockExtra that names the tops, if requested.
    """

    committed_by: dict[BlockId, int]
    new: tuple[BlockId, ...]
    mark: KeyMark
    mc_extra: bytes | None


TOPS_KEPT = 4


class TopsCache(dict[int, Tops]):
    """Shard tops of the most recently read masterchain blocks, by seqno."""

    def read(self, mc_block: RawBlock, *, with_extra: bool = False) -> Tops:
        """Return the shard tops of a masterchain block."""
        mc_seqno = mc_block.id.seqno
        if mc_seqno not in self:
            with naming_corrupt(mc_block.id):
                self[mc_seqno] = read_tops(mc_block.data, mc_seqno, with_extra=with_extra)
            while len(self) > TOPS_KEPT:
                del self[next(iter(self))]
        return self[mc_seqno]

    def list_known(self, mc_seqno: int) -> AbstractSet[BlockId]:
        """Return the shard tops of a masterchain block, none if it was not read recently."""
        return self[mc_seqno].committed_by.keys() if mc_seqno in self else frozenset()


def read_tops(data: bytes, mc_seqno: int, *, with_extra: bool = False) -> Tops:
    """Read the shard tops of a masterchain block, whose file hash was verified."""
    found = native.read_tops(data, with_extra=with_extra)
    if found is None:
        tree = parse_boc(data, check_crc=False)
        extra = read_mc_extra(tree)
        tops = [(top.id, top.reg_mc_seqno) for top in read_shard_tops(tree, extra)]
        mark = read_mark(tree, extra)
        bag = copy_part(tree, extra.cell) if with_extra else None
    else:
        key_seqno, named, bag = found
        mark = KeyMark(key_seqno, None)
        tops = [(BlockId(*fields), by) for fields, by in named]
    committed_by = {top: by for top, by in tops if top.seqno > 0}
    new = tuple([one for one, by in committed_by.items() if by >= mc_seqno])
    return Tops(committed_by, new, mark, bag)


def read_previous(block: RawBlock) -> tuple[BlockId, ...]:
    """Return the ids of a block's predecessors; its file hash was verified."""
    try:
        return read_header(parse_boc(block.data, check_crc=False)).previous
    except (BocError, DecodeError) as error:
        raise BlockCorrupt(str(error), block=block.id) from error


def collect_committed(
    new_tops: Iterable[BlockId], find_prev: Callable[[BlockId], Iterable[BlockId] | None]
) -> list[BlockId]:
    """Return the blocks that lead to ``new_tops``, tops included, by workchain, shard, seqno.

    ``find_prev`` returns a block's predecessors; None for a block committed earlier.
    """
    todo, seen, found = list(new_tops), set[BlockId](), []
    while todo:
        block_id = todo.pop()
        # After a split two children share a parent; after a merge there are two parents.
        if block_id.seqno == 0 or block_id in seen:
            continue
        seen.add(block_id)
        prev = find_prev(block_id)
        if prev is not None:
            found.append(block_id)
            todo.extend(prev)
    return sorted(found)


class Archive:
    """Reads bundles by masterchain seqno, up to the end of the archive."""

    def __init__(
        self, db_dir: Path, index: GlobalIndex, slices: SliceCache, *, proofs: bool = False
    ) -> None:
        """Read the slices that ``index`` lists; with ``proofs``, blocks include their proofs."""
        self._read_block = partial(read_block, with_proof=proofs)
        self.db_dir = db_dir
        self.index = index
        self.slices = slices
        self._tops = TopsCache()
        self._mc_block: RawBlock | None = None
        """The masterchain block read last."""
        self._read_tops = partial(self._tops.read, with_extra=proofs)
        self.signers = Signers(self._read_key_block)

    def refresh(self, *, rolled_back: bool) -> None:
        """Catch up with the node; after a roll-back, reopen all indexes and packages."""
        if rolled_back:
            self.slices.close()
            self.signers.forget()
        self.index.refresh()
        self.slices.refresh()
        self._tops.clear()
        self._mc_block = None

    def close(self) -> None:
        """Close every store."""
        self.slices.close()
        self.index.store.close()

    def find_first(self) -> int:
        """Return the first masterchain block of the oldest slice present; 1 if none is."""
        record = next(self._kept(self.index.slice_ids), None)
        if record is None:
            return 1
        if not self.slices.exists(record.id):
            return record.first_mc_seqno  # reading it reports the missing index
        first = record.first_mc_seqno
        with suppress(SourceError):  # reading its blocks reports the damage
            opened = self.slices.open(record.id)
            # A wrong record would silently hide blocks.
            seqnos = (each.seqno for each in opened.list_mc_ids())
            for one in sorted(seqno for seqno in seqnos if 0 < seqno < first):
                handle = opened.find_root_handle(MASTERCHAIN, one)
                if handle and opened.locate(handle.id, one):
                    return one
        return first

    def find_last(self) -> int:
        """Return the newest masterchain block in the slices' readable indexes; 0 if none."""
        for record in self._kept(reversed(self.index.slice_ids)):
            if self.slices.exists(record.id):
                with suppress(SourceError):  # as above
                    last = self.slices.open(record.id).last_mc_seqno()
                    if last is not None:
                        return last
        return 0

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the masterchain block at a seqno; None if there is none, or the index is damaged.

        Reading the block reports the damage.
        """
        with suppress(BlockUnavailable, SourceError):
            handle = self._open_slice(mc_seqno).find_root_handle(MASTERCHAIN, mc_seqno)
            if handle is not None:
                return McHead(mc_seqno, handle.id.root_hash, handle.unixtime)
        return None

    def has_conflicting(self, block_id: BlockId) -> bool:
        """Return whether the archive has a different masterchain block with the same seqno."""
        with suppress(BlockUnavailable, SourceError):
            opened = self._open_slice(block_id.seqno)
            if opened.find_handle(block_id) is None:
                return opened.find_root_handle(MASTERCHAIN, block_id.seqno) is not None
        return False

    def find_zero_states(self, workchains: Iterable[int]) -> list[BlockId]:
        """Return the ids of the zero states with a handle in the archive's first slice."""
        with suppress(SourceError):
            if 0 in self.index.slice_ids and self.slices.exists(0):
                find = self.slices.open(0).find_root_handle
                return [handle.id for one in workchains if (handle := find(one, 0))]
        return []

    def read_bundle(self, mc_seqno: int, *, check_files: bool = True) -> McBundle:
        """Return a bundle; ``check_files`` verifies the file hashes of shard blocks."""
        opened, mc_block = self._read_mc_block(mc_seqno)
        tops = self._read_tops(mc_block)
        absent, earlier = list[BlockId](), list[BlockId]()
        before = self._tops.list_known(mc_seqno - 1)

        def find_prev(block_id: BlockId) -> tuple[BlockId, ...] | None:
            if block_id in before and block_id not in tops.new:
                return None
            handle = opened.find_handle(block_id)
            if handle is None or handle.masterchain_ref is None:
                absent.append(block_id)
                return None
            if handle.masterchain_ref < mc_seqno and block_id not in tops.new:
                earlier.append(block_id)
                return None
            if handle.masterchain_ref != mc_seqno:
                raise SourceError(
                    f"{opened.store.name}: {block_id} is committed by {mc_seqno}, but its handle"
                    f" says {handle.masterchain_ref}"
                )
            if 0 in [one.seqno for one in handle.prev] and block_id.seqno != 1:
                raise SourceError(f"{opened.store.name}: {block_id} follows no zero state")
            return handle.prev

        check_signed(opened, mc_block, self.signers, tops.mark.before)
        with naming_corrupt(mc_block.id):
            committed = collect_committed(tops.new, find_prev)
            self._check_earlier(opened, earlier, mc_seqno)
        for block_id in absent:
            self._check_absent(opened, block_id, committed, mc_seqno, tops)
        shards = (
            self._read_block(opened, block_id, mc_seqno, check_file=check_files)
            for block_id in committed
        )
        if mc_block.proof is not None:
            mc_block = msgspec.structs.replace(mc_block, mc_extra=tops.mc_extra)
        return McBundle(mc_seqno, (mc_block, *shards), tops.mark)

    def check_tops(self, mc_seqno: int) -> None:
        """Verify that the newest block of every shard is present, whichever block committed it.

        Otherwise a node that keeps only some shards would look complete at a masterchain block that
        commits no block of the others.
        """
        _opened, mc_block = self._read_mc_block(mc_seqno)
        for block_id, committed_by in self._read_tops(mc_block).committed_by.items():
            try:
                opened = self._open_slice(committed_by)
            except (BlockPruned, BlockNeverHad):
                continue  # committed before the archive begins
            with naming_corrupt(block_id):
                if opened.find_handle(block_id) is None:
                    raise make_missing_error(block_id, committed_by, opened)

    def _kept(self, slice_ids: Iterable[int]) -> Iterator[SliceRecord]:
        for record in map(self.index.record, slice_ids):
            has_package = (self.db_dir / _name_package(record.id)).exists
            if not record.deleted and (self.slices.exists(record.id) or has_package()):
                yield record

    def _open_slice(self, mc_seqno: int) -> Slice:
        block = name_mc_block(mc_seqno)
        record = self.index.find_slice(mc_seqno)
        if record is None or mc_seqno <= 0:
            first = self.find_first()
            reason = f"the node's archive begins with masterchain block {first}"
            raise BlockNeverHad(reason, block=block, file=self.index.store.name)
        if record.deleted:
            reason = f"the node deleted slice {record.id}"
            raise BlockPruned(reason, block=block, file=name_index(record.id))
        if not self.slices.exists(record.id):
            name = name_index(record.id)
            package = _name_package(record.id)
            if (self.db_dir / package).exists():
                reason = f"the index is missing, although {package} is there"
                raise BlockCorrupt(reason, block=block, file=name)
            raise BlockPruned(f"slice {record.id} is gone", block=block, file=name)
        with naming_corrupt(block):
            return self.slices.open(record.id)

    def tops_before(self, mc_seqno: int) -> AbstractSet[BlockId] | None:
        """Return all shard tops before a masterchain block; None if the archive begins with it."""
        before = mc_seqno - 1
        if before == 0:
            return frozenset()
        if before not in self._tops:
            try:
                self._read_tops(self._read_mc_block(before)[1])
            except (BlockPruned, BlockNeverHad):
                return None
        return self._tops[before].committed_by.keys()

    def _check_earlier(self, opened: Slice, earlier: list[BlockId], mc_seqno: int) -> None:
        """Verify that the previous masterchain block has ``earlier`` as tops, as handles say."""
        try:
            before = self.tops_before(mc_seqno) if earlier else None
        except BlockCorrupt:
            return  # reported when that block is read
        for block_id in earlier:
            if before is not None and block_id not in before:
                raise SourceError(
                    f"{opened.store.name}: {block_id} leads to a block that {mc_seqno} commits,"
                    " but its handle names an earlier masterchain block, which does not contain it"
                )

    def _check_absent(
        self, opened: Slice, block_id: BlockId, committed: list[BlockId], mc_seqno: int, tops: Tops
    ) -> None:
        """Accept a block without a handle only if an earlier masterchain block committed it.

        That is the case if the previous masterchain block names it as a top; or, if the archive
        begins with this block, unless this one is the first to name it.
        """
        before = self.tops_before(mc_seqno)
        is_new = block_id in tops.new
        if before is not None and block_id in before and not is_new:
            return
        with naming_corrupt(name_mc_block(mc_seqno)):
            check_followers(opened, block_id, committed, mc_seqno)
        if before is not None or is_new:
            raise make_missing_error(block_id, mc_seqno, opened)

    def _read_mc_block(self, mc_seqno: int) -> tuple[Slice, RawBlock]:
        block = name_mc_block(mc_seqno)
        opened = self._open_slice(mc_seqno)
        if self._mc_block is not None and self._mc_block.id.seqno == mc_seqno:
            return opened, self._mc_block
        with naming_corrupt(block):
            handle = opened.find_root_handle(MASTERCHAIN, mc_seqno)
        if handle is None:
            raise BlockNeverHad("the index has no such block", block=block, file=opened.store.name)
        self._mc_block = self._read_block(opened, handle.id, mc_seqno)
        return opened, self._mc_block

    def _read_key_block(self, key_seqno: int) -> RawBlock | None:
        """Return a key block, the zero state for 0; None if the node does not have it."""
        try:
            if key_seqno == 0:
                return read_zero_block(self.db_dir, self.find_zero_states((MASTERCHAIN,)))
            opened = self._open_slice(key_seqno)
            handle = opened.find_root_handle(MASTERCHAIN, key_seqno)
            return None if handle is None else read_block(opened, handle.id, key_seqno)
        except (SourceError, BlockUnavailable):
            return None  # reported when that block is read


def _name_package(slice_id: int) -> str:
    return f"{name_package_folder(slice_id)}/archive.{slice_id:05d}.pack"
