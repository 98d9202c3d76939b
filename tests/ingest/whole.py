"""Ingests a node's folder into a lake, and reads folders and tables."""

import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

from tonlake.ingest.run.pipeline import IngestReport, ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_files
from tonlake.lake.log.state import read_state


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


def read_table(lake: Path, name: str) -> list[dict[str, Any]]:
    files = list_files(read_state(lake), name)
    return [row for file in files for row in read_rows(lake, file).to_pylist()]


def tree_digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
