"""Reads and decodes spans to pieces, in order; used by workers on one machine or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.assemble.chunk import explain_hole, read_chunks
from tonlake.ingest.decode.piece import Hole, decode_chunk
from tonlake.ingest.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.ingest.assemble.chunk import VersionRegistry
    from tonlake.ingest.blocks import BlockSource
    from tonlake.ingest.decode.piece import Piece
    from tonlake.ingest.settings import IngestSettings


def read_pieces(
    source: BlockSource, span: Span, settings: IngestSettings, versions: VersionRegistry
) -> Iterator[list[Piece | Hole]]:
    """Yield the pieces and holes of a span in order, chunk by chunk.

    If a block is not available yet, its hole is the last one, of kind ``NOT_YET``.
    """
    for chunk in read_chunks(source, span, settings, versions):
        if isinstance(chunk, Hole):
            yield [chunk]
            continue
        yield [
            explain_hole(source, outcome) if isinstance(outcome, Hole) else outcome
            for outcome in decode_chunk(chunk)
        ]


def cut_span(span: Span, mc_blocks: int) -> Iterator[Span]:
    """Split a span into spans of at most ``mc_blocks`` masterchain blocks."""
    for first in range(span.first, span.last + 1, mc_blocks):
        yield Span(first, min(first + mc_blocks - 1, span.last))
