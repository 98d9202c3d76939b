"""Blocks as a slice holds them: bytes at the place in the index, and links between blocks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.block.proof import check_proof
from tonlake.ingest.decode.cell.boc import parse_boc
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
    from collections.abc import Iterable, Iterator

    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.decode.signers import Signers
    from tonlake.ingest.source.node.package import Place
    from tonlake.ingest.source.node.slice import Slice


def miss_block(block_id: BlockId, mc_seqno: int, opened: Slice) -> BlockNeverHad:
    """Return the error for a block that a masterchain block commits, but no slice has."""
    return BlockNeverHad(
        f"masterchain block {mc_seqno} commits it, but the node does not have it: the node does"
        " not monitor this shard, or its folder was not copied whole",
        block=block_id,
        file=opened.store.name,
    )


def read_block(
    opened: Slice, block_id: BlockId, mc_seqno: int, *, check_file: bool = True
) -> RawBlock:
    """Return a block that ``mc_seqno`` commits; with ``check_file`` its bytes have its file hash.

    Raises:
        BlockNeverHad: the slice has no place for it.
        BlockCorrupt: its bytes are wrong, or the index contradicts itself.
    """
    with naming_corrupt(block_id):
        place = opened.locate(block_id, mc_seqno)
        if place is not None:
            return RawBlock(block_id, read_block_entry(place, block_id, check_file=check_file))
    reason = "the index has a handle, but no place for the block's data"
    raise BlockNeverHad(reason, block=block_id, file=opened.store.name)


def read_proven_block(
    opened: Slice, block_id: BlockId, mc_seqno: int, *, check_file: bool = True
) -> RawBlock:
    """Return a block with its proof; without, where the node has none.

    The proof of a shard block is checked; for that of a masterchain block see ``check_signed``.
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
    """Check the proof of a masterchain block, if it has one, and the signatures in it.

    Returns:
        Whether the signatures were verified.

    Raises:
        BlockCorrupt: as ``Signers.check``.
    """
    try:
        return signers.check(block, key_seqno)
    except (BocError, DecodeError) as error:
        with naming_corrupt(block.id):
            place = opened.locate_proof(block.id, block.id.seqno)
            if place is not None:
                raise _flaw_of_proof(place, error) from error
        raise BlockCorrupt(str(error), block=block.id) from error


def _flaw_of_proof(place: Place, error: Exception) -> EntryFlaw:
    """Return the error that names the entry of a damaged proof."""
    offset = FILE_HEADER_BYTES + place.offset
    reason = f"the proof of the block is damaged: {error}"
    return EntryFlaw(reason, file=place.name, offset=offset)


@contextmanager
def naming_corrupt(block: BlockId) -> Iterator[None]:
    """Turn damage that shows while a block is looked for into the error that names the block."""
    try:
        yield
    except EntryFlaw as flaw:
        raise BlockCorrupt(flaw.reason, block=block, file=flaw.file, offset=flaw.offset) from flaw
    except (SourceError, BocError, DecodeError) as error:
        raise BlockCorrupt(str(error), block=block) from error


def check_followers(
    opened: Slice, block_id: BlockId, committed: Iterable[BlockId], mc_seqno: int
) -> None:
    """Make sure that the blocks whose handles name a block as the one before them follow it.

    Raises:
        SourceError: one does not.
        BlockNeverHad, BlockCorrupt: as ``read_block``.
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
