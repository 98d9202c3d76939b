"""Finds the shard blocks that a masterchain block commits: from its shard tops back along ``prev``.

Blocks are read from a slice: the index has the place of their bytes, handles link them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import BlockId, KeyMark, RawBlock
from tonlake.ingest.decode.block.config import read_mark
from tonlake.ingest.decode.block.header import read_extra, read_header, read_parts
from tonlake.ingest.decode.block.proof import check_proof
from tonlake.ingest.decode.block.shard import read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import copy_part
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BocError,
    DecodeError,
    EntryFlaw,
    SourceError,
)
from tonlake.ingest.source.node.package import (
    FILE_HEADER_BYTES,
    read_block_entry,
    read_proof_entry,
)
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tonlake.ingest.decode.block.validator import Signers
    from tonlake.ingest.source.node.package import EntryPlace
    from tonlake.ingest.source.node.slice import Slice


def make_missing_error(block_id: BlockId, mc_seqno: int, opened: Slice) -> BlockNeverHad:
    """Return the error for a block that a masterchain block commits, but no slice contains."""
    return BlockNeverHad(
        f"masterchain block {mc_seqno} commits it, but the node does not have it: the node does"
        " not monitor this shard, or its folder was not copied completely",
        block=block_id,
        file=opened.store.name,
    )


def read_block(
    opened: Slice, block_id: BlockId, mc_seqno: int, *, check_file: bool = True
) -> RawBlock:
    """Return a block committed by ``mc_seqno``; ``check_file`` verifies its file hash.

    Raises:
        BlockNeverHad: the slice has no offset for it.
        BlockCorrupt: its bytes are wrong, or the index contradicts itself.
    """
    with naming_corrupt(block_id):
        place = opened.locate(block_id, mc_seqno)
        if place is not None:
            return RawBlock(block_id, read_block_entry(place, block_id, check_file=check_file))
    reason = "the index has a handle, but no offset for the block's data"
    raise BlockNeverHad(reason, block=block_id, file=opened.store.name)


def read_proven_block(
    opened: Slice, block_id: BlockId, mc_seqno: int, *, check_file: bool = True
) -> RawBlock:
    """Return a block with its proof, or without if the node has none.

    The proof of a shard block is verified; for that of a masterchain block see ``check_signed``.
    """
    block = read_block(opened, block_id, mc_seqno, check_file=check_file)
    with naming_corrupt(block_id):
        place = opened.locate_proof(block_id, mc_seqno)
        if place is None:
            return block
        proof = read_proof_entry(place, block_id)
        if block_id.workchain != MASTERCHAIN:
            try:
                check_proof(proof, block_id)
            except (BocError, DecodeError) as error:
                raise _flaw_of_proof(place, error) from error
        return msgspec.structs.replace(block, proof=proof)


def check_signed(opened: Slice, block: RawBlock, signers: Signers, key_seqno: int) -> bool:
    """Verify the proof of a masterchain block, if it has one, and the signatures in it.

    Returns:
        Whether the signatures were verified.

    Raises:
        BlockCorrupt: see ``Signers.check``.
    """
    try:
        return signers.check(block, key_seqno)
    except (BocError, DecodeError) as error:
        with naming_corrupt(block.id):
            place = opened.locate_proof(block.id, block.id.seqno)
            if place is not None:
                raise _flaw_of_proof(place, error) from error
        raise BlockCorrupt(str(error), block=block.id) from error


def _flaw_of_proof(place: EntryPlace, error: Exception) -> EntryFlaw:
    """Return the error for the entry of a damaged proof."""
    offset = FILE_HEADER_BYTES + place.offset
    reason = f"the proof of the block is damaged: {error}"
    return EntryFlaw(reason, file=place.name, offset=offset)


@contextmanager
def naming_corrupt(block: BlockId) -> Iterator[None]:
    """Turn damage found while reading a block into a BlockCorrupt that names it."""
    try:
        yield
    except EntryFlaw as flaw:
        raise BlockCorrupt(flaw.reason, block=block, file=flaw.file, offset=flaw.offset) from flaw
    except (SourceError, BocError, DecodeError) as error:
        raise BlockCorrupt(str(error), block=block) from error


def check_followers(
    opened: Slice, block_id: BlockId, committed: Iterable[BlockId], mc_seqno: int
) -> None:
    """Verify that the blocks whose handles name ``block_id`` as predecessor do follow it.

    Raises:
        SourceError: a block does not.
        BlockNeverHad, BlockCorrupt: see ``read_block``.
    """
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
        """Return the shard tops of a masterchain block.

        Raises:
            BlockCorrupt: the bytes are not a masterchain block.
        """
        mc_seqno = mc_block.id.seqno
        if mc_seqno not in self:
            with naming_corrupt(mc_block.id):
                self[mc_seqno] = read_tops(mc_block.data, mc_seqno, with_extra=with_extra)
            while len(self) > TOPS_KEPT:
                del self[next(iter(self))]
        return self[mc_seqno]


def read_tops(data: bytes, mc_seqno: int, *, with_extra: bool = False) -> Tops:
    """Read the shard tops of a masterchain block, without zero states.

    The CRC of ``data`` is not checked, since its file hash was.

    Raises:
        BocError, DecodeError: the bytes are not a masterchain block.
    """
    tree = parse_boc(data, check_crc=False)
    committed_by = {top.id: top.reg_mc_seqno for top in read_shard_tops(tree) if top.seqno > 0}
    new = tuple(one for one, by in committed_by.items() if by >= mc_seqno)
    custom = read_extra(tree, read_parts(tree)).custom if with_extra else None
    extra = None if custom is None else copy_part(tree, custom)
    return Tops(committed_by, new, read_mark(tree), extra)


def read_previous(block: RawBlock) -> tuple[BlockId, ...]:
    """Return the ids of a block's predecessors; its file hash was verified, its CRC is not.

    Raises:
        BlockCorrupt: the bytes are not a block.
    """
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
