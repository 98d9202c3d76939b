"""A node's folder: can it be read, what has it, and does the lake go on where it can."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tonlake.api.command.doctor.finding import Finding
from tonlake.ingest.errors import IngestError
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.errors import LakeError
from tonlake.lake.log.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def check_node(db_dir: Path, lake_dir: Path | None) -> Iterator[Finding]:
    """Yield what concerns a node's folder, and the lake that is made of it."""
    try:
        with closing(open_node(db_dir)) as source:
            first, last = source.first_mc_seqno(), source.last_mc_seqno()
            if not last:
                advice = "wait until the node has blocks"
                yield Finding("node", "problem", "it has no complete block", advice)
                return
            source.read_bundle(last)
    except (IngestError, OSError) as error:
        advice = "name the folder that holds archive, files and state, readable by this user"
        yield Finding("node", "problem", str(error), advice)
        return
    yield Finding("node", "ok", f"complete masterchain blocks {first}..{last}")
    if lake_dir is not None:
        yield from _compare(lake_dir, first, last)


def _compare(lake_dir: Path, first: int, last: int) -> Iterator[Finding]:
    try:
        ours = open_snapshot(lake_dir, check_digests=False).last_mc_seqno
    except LakeError:
        return  # the checks of the lake say what is wrong with it
    if first > ours + 1:
        text = f"the lake ends with {ours}, and the node begins with {first}: a hole is certain"
        advice = "ingest soon, keep more on the node (--archive-ttl), or fill it from packages"
        yield Finding("node and lake", "warning", text, advice)
    elif ours > last:
        text = f"the lake has {ours}, and the node ends with {last}"
        advice = "wait until the node has caught up; is it the node of this lake?"
        yield Finding("node and lake", "warning", text, advice)
    else:
        yield Finding("node and lake", "ok", f"{last - ours:,} blocks to ingest")
