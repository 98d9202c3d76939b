"""The fork point of a lake's chain and its node's, found by hashes of masterchain blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.assemble.chain import list_heads
from tonlake.ingest.errors import SourceError
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_files, read_place
from tonlake.lake.schema import BLOCKS

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.blocks import BlockSource, McHead
    from tonlake.lake.log.state import LogState, Range


def read_heads(lake_dir: Path, state: LogState, seqnos: Range) -> dict[int, McHead]:
    """Return the masterchain blocks of a lake in a range, by seqno."""
    first, last = seqnos
    found: dict[int, McHead] = {}
    for file in list_files(state, BLOCKS.name):
        place = read_place(file.path)
        if place.last < first or place.first > last:
            continue
        rows = read_rows(lake_dir, file, ("workchain", "seqno", "root_hash", "gen_utime"))
        found |= list_heads(rows)
    return {at: head for at, head in found.items() if first <= at <= last}


def find_last_common(
    source: BlockSource, lake_dir: Path, state: LogState, node_last: int, *, most_mc_blocks: int
) -> int:
    """Return the newest masterchain block of the lake that the node has as well.

    That is the lake's newest one where the node continues from it, or no longer has it.

    Raises:
        SourceError: the chains differ further back than that.
    """
    newest = state.ranges[-1][1]
    top = min(newest, node_last)
    if _is_same(source, lake_dir, state, (top, top)) is not None:
        return top
    oldest = max(1, top - most_mc_blocks)
    common = _is_same(source, lake_dir, state, (oldest, top - 1))
    if common is None:
        raise SourceError(
            f"the lake's masterchain blocks {oldest} to {top} are not the node's: it follows"
            " another chain; name another node, or another lake"
        )
    return common


def _is_same(source: BlockSource, lake_dir: Path, state: LogState, seqnos: Range) -> int | None:
    """Return the newest block of a range that the node has too, or no longer has."""
    ours = read_heads(lake_dir, state, seqnos)
    for mc_seqno in range(seqnos[1], seqnos[0] - 1, -1):
        theirs = source.find_head(mc_seqno)
        if mc_seqno not in ours or theirs is None:
            if mc_seqno == seqnos[1]:
                return mc_seqno
            continue
        if theirs.root_hash == ours[mc_seqno].root_hash:
            return mc_seqno
    return None
