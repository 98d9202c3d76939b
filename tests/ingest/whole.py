"""Ingests a node's folder into a lake, and reads folders and tables."""

import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

from tonlake.ingest.run.pipeline import IngestReport, ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_files
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TABLES


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


OF_CUTS = {
    "state_cells": "distinct hash, cell, refs",
    "interfaces": "distinct code_hash, methods, names",
}
"""Of tables whose rows depend on how blocks are cut into commits, what does not."""


def read_all(lake: Path, *left_out: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables but some, in one order, without the days of their files."""
    names = TABLES.keys() - {*left_out}
    with closing(connect(open_snapshot(lake), statement=" ".join(names))) as connection:
        return {
            name: connection.execute(
                f"select {OF_CUTS.get(name, '* exclude (day)')} from {name} order by all"  # noqa: S608
            ).fetchall()
            for name in names
        }


def tree_digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
