"""Ingests a node's folder into a lake."""

from contextlib import closing
from pathlib import Path

from tonlake.ingest.run.pipeline import IngestReport, ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span


def ingest_node(
    node: Path,
    lake: Path,
    settings: IngestSections,
    first: int | None = None,
    last: int | None = None,
    *,
    proofs: bool = False,
) -> IngestReport:
    """Ingest masterchain blocks of a node, by default from its first to its last."""
    with closing(open_node(node, proofs=proofs)) as source:
        start = source.first_mc_seqno() if first is None else first
        end = source.last_mc_seqno() if last is None else last
        return ingest(source, lake, Span(start, end), settings)
