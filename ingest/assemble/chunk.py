"""Masterchain blocks in chunks for decoding, the same for one process and for many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.parallel import Hole
from tonlake.ingest.errors import BlockNotYet, BlockUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.ingest.assemble.version import VersionRegistry
    from tonlake.ingest.blocks import BlockSource, McBundle
    from tonlake.ingest.settings import IngestSettings
    from tonlake.ingest.span import Span

CHUNK_BYTES = 4 << 20
"""A chunk is cut once it holds this many bytes."""

NOT_YET = BlockNotYet.__name__
"""Kind of the hole that ends a source: what comes later is not there yet."""


def explain_hole(source: BlockSource, hole: Hole) -> Hole:
    """Return a hole that decoding found with the source's reason, which names file and offset."""
    try:
        source.read_bundle(hole.mc_seqno)
    except BlockUnavailable as error:
        return _make_hole(hole.mc_seqno, error)
    return hole


def _make_hole(mc_seqno: int, error: BlockUnavailable) -> Hole:
    return Hole(mc_seqno, type(error).__name__, str(error))


def read_chunks(
    source: BlockSource, span: Span, settings: IngestSettings, versions: VersionRegistry
) -> Iterator[list[McBundle] | Hole]:
    """Yield the blocks of a span in order, and in their places the holes.

    File hashes of shard blocks may be unchecked: pass holes found by decoding to ``explain_hole``.
    A chunk ends at a hole, at ``chunk_bytes``, and at every ``mc_blocks_per_chunk``-th block of
    the span, so that a span cut there gives the same chunks. A block not there yet ends them all.
    """
    chunk: list[McBundle] = []
    size_bytes = 0
    for mc_seqno in range(span.first, span.last + 1):
        try:
            bundle = versions.attach(source.read_unchecked(mc_seqno))
        except BlockUnavailable as error:
            if chunk:
                yield chunk
                chunk, size_bytes = [], 0
            yield _make_hole(mc_seqno, error)
            if isinstance(error, BlockNotYet):
                return
            continue
        chunk.append(bundle)
        size_bytes += sum(len(block.data) for block in bundle.blocks)
        at_border = (mc_seqno - span.first + 1) % settings.mc_blocks_per_chunk == 0
        if at_border or size_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
    if chunk:
        yield chunk
