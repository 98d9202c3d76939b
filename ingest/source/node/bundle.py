"""Which shard blocks a masterchain block commits: from its shard tops back along ``prev``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import BlockId, KeyMark, RawBlock
from tonlake.ingest.decode.block.config import read_mark
from tonlake.ingest.decode.block.header import read_extra, read_header, read_parts
from tonlake.ingest.decode.block.shard import read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import copy_part
from tonlake.ingest.errors import BlockCorrupt, BocError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Tops(msgspec.Struct, frozen=True):
    """Shard tops that a masterchain block names, each with the one that committed it.

    ``new`` are those that it commits itself; ``mark`` names configurations, and
    ``mc_extra`` is McBlockExtra, which names the tops, if requested.
    """

    committed_by: dict[BlockId, int]
    new: tuple[BlockId, ...]
    mark: KeyMark
    mc_extra: bytes | None


def read_tops(data: bytes, mc_seqno: int, *, with_extra: bool = False) -> Tops:
    """Read the shard tops of a masterchain block; zero states are no blocks and are left out.

    The file hash of ``data`` is checked where it is read from, so its CRC is not.

    Raises:
        BocError, DecodeError: the bytes are no masterchain block.
    """
    tree = parse_boc(data, check_crc=False)
    committed_by = {top.id: top.reg_mc_seqno for top in read_shard_tops(tree) if top.seqno > 0}
    new = tuple(one for one, by in committed_by.items() if by >= mc_seqno)
    custom = read_extra(tree, read_parts(tree)).custom if with_extra else None
    extra = None if custom is None else copy_part(tree, custom)
    return Tops(committed_by, new, read_mark(tree), extra)


def read_previous(block: RawBlock) -> tuple[BlockId, ...]:
    """Return the ids of the blocks before a block whose file hash is checked, so its CRC is not.

    Raises:
        BlockCorrupt: the bytes are no block.
    """
    try:
        return read_header(parse_boc(block.data, check_crc=False)).previous
    except (BocError, DecodeError) as error:
        raise BlockCorrupt(str(error), block=block.id) from error


def collect_committed(
    new_tops: Iterable[BlockId], find_prev: Callable[[BlockId], Iterable[BlockId] | None]
) -> list[BlockId]:
    """Return the blocks that lead to the new tops, tops included, by workchain, shard, seqno.

    ``find_prev`` returns a block's predecessors, None for a block committed earlier.
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
