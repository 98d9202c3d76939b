"""The chain of masterchain blocks: what the lake has of it, and that new blocks fit to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.errors import SourceError
from ingest.span import Span, missing_spans
from lake.errors import LakeNotFound
from lake.snapshot import open_snapshot

MASTERCHAIN = -1


class Link(msgspec.Struct, frozen=True):
    """How a masterchain block hangs in its chain."""

    root_hash: bytes
    prev_root_hash: bytes


class Chain:
    """Spans of the chain that a lake covers, and the links at the borders of what it lacks."""

    def __init__(self, covered: list[Span], links: dict[int, Link]) -> None:
        """Begin with the spans covered and the links known by seqno; ``read_chain`` gives both."""
        self.covered = covered
        self._links = links

    def extend(self, blocks: pa.Table, span: Span) -> None:
        """Take the masterchain blocks of ``span`` out of rows of the table ``blocks``.

        Raises:
            SourceError: one is missing, or does not follow the block before it.
        """
        links = self._links | masterchain_links(blocks)
        for seqno in range(span.first, span.last + 2):
            link, before = links.get(seqno), links.get(seqno - 1)
            if link is None and seqno <= span.last:
                raise SourceError(f"masterchain block {seqno} is missing from what was decoded")
            if link and before and link.prev_root_hash != before.root_hash:
                raise SourceError(
                    f"masterchain block {seqno} does not follow block {seqno - 1}: it names "
                    f"{link.prev_root_hash.hex()} before it, and that block's root hash is "
                    f"{before.root_hash.hex()}; this source holds another chain than the lake"
                )
        self._links |= {seqno: links[seqno] for seqno in (span.first, span.last)}


def read_chain(lake_dir: Path, wanted: Span) -> Chain:
    """Return the chain of a lake, with the links around the parts of ``wanted`` it lacks."""
    try:
        snapshot = open_snapshot(lake_dir, check_digests=False)
    except LakeNotFound:
        return Chain([], {})
    covered = [Span(first, last) for first, last in snapshot.ranges]
    lacking = missing_spans(wanted, covered)
    around = {seqno for span in lacking for seqno in (span.first - 1, span.last + 1)}
    links: dict[int, Link] = {}
    for file in snapshot.files["blocks"]:
        first, last, _digest = Path(file.path).name.split("-")
        if any(int(first) <= seqno <= int(last) for seqno in around):
            links |= masterchain_links(pq.read_table(lake_dir / file.path))
    return Chain(covered, {seqno: links[seqno] for seqno in around & links.keys()})


def masterchain_links(blocks: pa.Table) -> dict[int, Link]:
    """Return the link of each masterchain block among rows of the table ``blocks``, by seqno."""
    rows = blocks.filter(pc.equal(blocks["workchain"], MASTERCHAIN))
    hashes = zip(rows["root_hash"].to_pylist(), rows["prev_root_hash"].to_pylist(), strict=True)
    links = (Link(root_hash, prev_root_hash) for root_hash, prev_root_hash in hashes)
    return dict(zip(rows["seqno"].to_pylist(), links, strict=True))
