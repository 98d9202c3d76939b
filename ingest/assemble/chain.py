"""Checks the chain of masterchain blocks: ranges in the lake, links of new blocks, fork point."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from tonlake.ingest.blocks import BlockSource, McHead
from tonlake.ingest.errors import SourceError, SourceForeign
from tonlake.ingest.span import Span, missing_spans
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import iter_tuples, read_rows
from tonlake.lake.log.place import Place, list_files_between, read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import LogReader, LogState
from tonlake.lake.schema import BLOCKS

ADVICE = "ingest this source into a lake of its own, or name the lake's own source"
_LINK = ("root_hash", "prev_root_hash")


class Link(msgspec.Struct, frozen=True):
    """Root hashes of a masterchain block and its predecessor, None if that is unknown."""

    root_hash: bytes
    prev_root_hash: bytes | None


class LakeChain(msgspec.Struct):
    """The spans that a lake covers, and the links at the borders of its gaps, by seqno."""

    covered: list[Span]
    links: dict[int, Link]

    def extend(self, blocks: pa.Table, span: Span) -> None:
        """Add the masterchain blocks of ``span``; raise SourceError unless they follow."""
        links = self.links | masterchain_links(blocks)
        for seqno in range(span.first, span.last + 2):
            link, before = links.get(seqno), links.get(seqno - 1)
            if link is None and seqno <= span.last:
                raise SourceError(f"masterchain block {seqno} is missing from the decoded blocks")
            if link is None or before is None or link.prev_root_hash is None:
                continue
            if link.prev_root_hash != before.root_hash:
                raise SourceError(
                    f"masterchain block {seqno} does not follow block {seqno - 1}: its predecessor "
                    f"is {link.prev_root_hash.hex()}, but that block's root hash is "
                    f"{before.root_hash.hex()}; this source has another chain than the lake"
                )
        self.links |= {seqno: links[seqno] for seqno in (span.first, span.last)}


Borders = dict[str, dict[int, Link]]
"""Links of the first and the last masterchain block of each ``blocks`` file, by path."""

_BORDERS_KEPT = 100


def read_chain(log: LogReader, requested: Span, borders: Borders) -> LakeChain:
    """Return the chain of a lake with the links around its gaps, which ``borders`` caches."""
    state = log.read()
    covered = [Span(first, last) for first, last in state.ranges]
    if state.last_pruned:  # pruned blocks count as covered, so that they are not ingested again
        covered.insert(0, Span(1, state.last_pruned))
    lacking = missing_spans(requested, covered)
    around = {seqno for span in lacking for seqno in (span.first - 1, span.last + 1)}
    links: dict[int, Link] = {}
    near = (min(around), max(around)) if around else (1, 0)
    for file in list_files_between(state, *near, BLOCKS.name):
        place = read_place(file.path)
        if any(place.first <= seqno <= place.last for seqno in around):
            if file.path not in borders:
                rows = read_rows(log.lake_dir, file, ("workchain", "seqno", *_LINK))
                keep_border(borders, file.path, place, masterchain_links(rows))
            links |= borders[file.path]
    return LakeChain(covered, {seqno: links[seqno] for seqno in around & links.keys()})


def keep_border(borders: Borders, path: str, place: Place, links: dict[int, Link]) -> None:
    """Cache the links of the first and the last block of a file."""
    if len(borders) >= _BORDERS_KEPT:
        borders.clear()
    borders[path] = {at: links[at] for at in (place.first, place.last) if at in links}


def masterchain_links(blocks: pa.Table) -> dict[int, Link]:
    """Return the links of the masterchain blocks among rows of ``blocks``, by seqno."""
    return {seqno: Link(*link) for seqno, *link in list_masterchain(blocks, ("seqno", *_LINK))}


def list_heads(blocks: pa.Table) -> dict[int, McHead]:
    """Return the masterchain blocks among rows of ``blocks``, by seqno."""
    columns = ("seqno", "root_hash", "gen_utime")
    heads = (McHead(*head) for head in list_masterchain(blocks, columns))
    return {head.mc_seqno: head for head in heads}


def list_masterchain(blocks: pa.Table, columns: Sequence[str]) -> Iterator[list[Any]]:
    """Yield columns of masterchain rows; for a few rows this is faster than an Arrow filter."""
    for workchain, *values in iter_tuples(blocks, ("workchain", *columns)):
        if workchain == MASTERCHAIN:
            yield values


def read_heads(lake_dir: Path, state: LogState, seqnos: Range) -> dict[int, McHead]:
    """Return the masterchain blocks of a lake within a range, by seqno."""
    first, last = seqnos
    found: dict[int, McHead] = {}
    for file in list_files_between(state, first, last, BLOCKS.name):
        rows = read_rows(lake_dir, file, ("workchain", "seqno", "root_hash", "gen_utime"))
        found |= list_heads(rows)
    return {at: head for at, head in found.items() if first <= at <= last}


def check_origin(source: BlockSource, lake_dir: Path, state: LogState, requested: Span) -> None:
    """Verify that lake and source have the same zero state and newest common block.

    The common block is the newest of ``requested`` that both may have. If either lacks it, only the
    zero states are compared, as far as both are known. Raises SourceForeign if the lake belongs to
    another network or another chain.
    """
    check_network(source, lake_dir, state)
    shared = [last for first, last in state.ranges if first <= requested.last]
    newest = min(shared[-1], requested.last, source.last_mc_seqno()) if shared else 0
    if newest < requested.first:
        return
    known = read_heads(lake_dir, state, (newest, newest)).get(newest)
    found = source.find_head(newest)
    if known is not None and found is not None and known.root_hash != found.root_hash:
        raise SourceForeign(
            f"the lake {lake_dir} belongs to another chain: its masterchain block {newest} is"
            f" {known.root_hash.hex()}, the source's {found.root_hash.hex()}; {ADVICE}"
        )


def check_network(source: BlockSource, lake_dir: Path, state: LogState) -> None:
    """Compare the zero states of lake and source, if known; raise SourceForeign if they differ."""
    ours = None if state.network is None else state.network.zero_state_root_hash
    for zero in source.zero_states():
        if zero.workchain == MASTERCHAIN and ours not in {None, zero.root_hash.hex()}:
            raise SourceForeign(
                f"the lake {lake_dir} belongs to another network: its zero state is {ours}, the"
                f" source's {zero.root_hash.hex()}; {ADVICE}"
            )


def find_last_common(
    source: BlockSource, lake_dir: Path, state: LogState, node_last: int, *, max_mc_blocks: int
) -> int:
    """Return the newest masterchain block that the lake has in common with the node.

    That is the lake's newest one if the node continues from it, or no longer has it. Raises
    SourceError if the last ``max_mc_blocks`` blocks of the lake all differ from the node's.
    """
    newest = state.ranges[-1][1]
    top = min(newest, node_last)
    if _find_common(source, lake_dir, state, (top, top)) is not None:
        return top
    oldest = max(state.ranges[0][0], top - max_mc_blocks)
    common = _find_common(source, lake_dir, state, (oldest, top - 1))
    if common is None:
        raise SourceError(
            f"the lake's masterchain blocks {oldest} to {top} are not the node's: it follows"
            " another chain; name another node, or another lake"
        )
    return common


def _find_common(source: BlockSource, lake_dir: Path, state: LogState, seqnos: Range) -> int | None:
    """Return the newest block of a range that the node has, too, or no longer has."""
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
