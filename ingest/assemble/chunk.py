"""Reads masterchain blocks in chunks for decoding, each with its global version.

The version decides the meaning of some fields whose layout never changed. Every block names the key
block whose configuration applies to it; the version is read from that key block, or from a lake
that has its parameters.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.compute as pc

from tonlake.ingest.assemble.batch import Hole
from tonlake.ingest.blocks import BlockSource, KeyMark, McBundle
from tonlake.ingest.decode.block.block import VERSION_PARAM, find_zero_version, read_version
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BlockNotYet, BlockUnavailable
from tonlake.ingest.settings import IngestSettings
from tonlake.ingest.span import Span
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_files_between
from tonlake.lake.log.state import LogReader
from tonlake.lake.schema import BLOCKS, CONFIG_PARAMS

KEYS_BACK = 2
"""Shards lag behind the masterchain: their blocks may refer to the last key block but one."""


class VersionRegistry:
    """Marks of key blocks from a source and the lake it is ingested into; each is read once."""

    def __init__(self, source: BlockSource, log: LogReader | None = None) -> None:
        """Start empty; the lake of ``log`` has key blocks that the source may have deleted."""
        self._source = source
        self._log = log
        self._marks: dict[int, KeyMark | None] = {}

    def attach(self, bundle: McBundle) -> McBundle:
        """Return the bundle with the global versions of the key blocks that its blocks name."""
        mark = bundle.mark
        if mark is None:
            return bundle
        if mark.version is not None:
            self._marks[bundle.mc_seqno] = mark
        versions: dict[int, int] = {}
        for _ in range(KEYS_BACK):
            key_seqno = mark.before
            if key_seqno not in self._marks:
                found = self._ask_source(key_seqno) or self._ask_lake(key_seqno)
                self._marks[key_seqno] = found
            mark = self._marks[key_seqno]
            if mark is None or mark.version is None:
                break
            versions[key_seqno] = mark.version
        return msgspec.structs.replace(bundle, versions=versions)

    def _ask_source(self, key_seqno: int) -> KeyMark | None:
        if key_seqno == 0:
            for state in self._source.zero_states():
                if state.workchain == MASTERCHAIN:
                    return KeyMark(0, find_zero_version(state.data))
            return None
        try:
            return self._source.read_unchecked(key_seqno).mark
        except BlockUnavailable:
            return None

    def _ask_lake(self, key_seqno: int) -> KeyMark | None:
        if self._log is None:
            return None
        is_param = (pc.field("mc_seqno") == key_seqno) & (pc.field("param") == VERSION_PARAM)
        bags = _read_column(self._log, CONFIG_PARAMS.name, key_seqno, "boc", is_param)
        if not bags:
            return None
        tree = parse_boc(bags[0])
        is_block = (pc.field("workchain") == MASTERCHAIN) & (pc.field("seqno") == key_seqno)
        before = _read_column(self._log, BLOCKS.name, key_seqno, "prev_key_block_seqno", is_block)
        return KeyMark(before[0] if before else 0, read_version(tree, tree.roots[0]))


def _read_column(
    log: LogReader, table: str, mc_seqno: int, column: str, where: pc.Expression
) -> list[Any]:
    """Return a column of the rows of one masterchain block; the zero state is in the first file."""
    found: list[Any] = []
    first = max(mc_seqno, 1)
    for file in list_files_between(log.read(), first, first, table):
        found += read_rows(log.lake_dir, file, (column,), where)[column].to_pylist()
    return found


CHUNK_BYTES = 4 << 20
"""A chunk is cut once it has this many bytes."""

NOT_YET = BlockNotYet.__name__
"""Kind of the hole at the end of a source, after which nothing is available yet."""


def explain_hole(source: BlockSource, hole: Hole) -> Hole:
    """Return a hole found by decoding with the source's reason, which names file and offset."""
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
    """Yield the blocks of a span, with holes in place of unavailable ones, up to one not yet there.

    File hashes of shard blocks may be unverified: pass holes found by decoding to
    ``explain_hole``. A chunk ends at a hole, at ``CHUNK_BYTES``, and at every
    ``mc_blocks_per_chunk``-th block of the span.
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
