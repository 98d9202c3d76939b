"""Decodes shard blocks that are signed, before a masterchain block commits them.

A node started with ``--db-event-fifo`` reports each such block (ton_api.tl: db.event.blockSigned,
then tonNode.blockIdExt); its bytes are in the temporary packages. All signed blocks that the lake
lacks are decoded together, as if the next masterchain block committed them. Their rows replace
those in ``tonlake.lake.log.following``, from where streams send them.
"""

import re
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

from tonlake.ingest.blocks import BlockId, BlockSource, KeyMark, McBundle, RawBlock
from tonlake.ingest.decode.block.header import ShardTop, read_header, read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BlockCorrupt, IngestError
from tonlake.ingest.run.pipeline import Pipeline
from tonlake.ingest.source.node import tl
from tonlake.ingest.source.node.source import NodeSource
from tonlake.lake.account import MASTERCHAIN, BlockPlace, is_passed
from tonlake.lake.errors import LakeError
from tonlake.lake.log.following import remove_confirmed, write_confirmed
from tonlake.lake.log.state import LogState

MAX_BLOCKS = 64
"""Most signed blocks that are decoded; more wait for their masterchain block."""

MAX_EVENTS = 256
"""Most reported blocks that are waited for; of more, the first are forgotten."""

WAIT_S = 10.0
"""Seconds for which a reported block may be missing in the packages."""

_BLOCK_SIGNED = re.compile(
    b"(?=" + re.escape(tl.pack_constructor(tl.BLOCK_SIGNED)) + b"(.{80}))", re.DOTALL
)
"""An event; the one after a torn one may begin inside it."""


class SignedBlocks:
    """The signed blocks that the lake does not have yet."""

    def __init__(self, lake_dir: Path, notify: Callable[[str], None]) -> None:
        """Start without blocks; ``notify`` receives why blocks cannot be decoded."""
        self._lake_dir = lake_dir
        self._notify = notify
        self._tail = b""
        self._due: dict[BlockId, float] = {}
        """Blocks that were reported, but not yet read, and when."""
        self._held: dict[BlockId, RawBlock] = {}
        self._commit = 0
        remove_confirmed(lake_dir)

    def note(self, events: bytes) -> None:
        """Take bytes of the pipe; events of other kinds, and torn ones, are passed over."""
        data = self._tail + events
        rest = 0
        for match in _BLOCK_SIGNED.finditer(data):
            block_id = tl.TlReader(match[1], "db.event.blockSigned").read_block_id()
            rest = match.start() + 1
            if block_id.workchain != MASTERCHAIN and block_id not in self._held:
                self._due[block_id] = time.monotonic()
        self._tail = data[max(rest, len(data) - tl.EVENT_BYTES + 1) :]
        for block_id in list(self._due)[:-MAX_EVENTS]:
            del self._due[block_id]

    @property
    def has_blocks(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._due or self._held)

    def advance(self, source: BlockSource, state: LogState, open_: Callable[[], Pipeline]) -> None:
        """Decode the blocks that can be decoded now, and forget those that the lake has passed."""
        is_same, self._commit = state.number == self._commit, state.number
        if not state.ranges or not isinstance(source, NodeSource) or (is_same and not self._due):
            return
        try:
            last = source.read_unchecked(state.ranges[-1][1])
            if self._choose(source, last):
                rows = open_().derive_ahead(self._join(last))
                if rows:
                    write_confirmed(self._lake_dir, state.number, rows)
        except (IngestError, LakeError, OSError) as error:
            self._due, self._held = {}, {}
            self._notify(f"signed blocks cannot be decoded: {error}")
        if not self._held:
            remove_confirmed(self._lake_dir)

    def _choose(self, source: NodeSource, last: McBundle) -> bool:
        """Drop the blocks that ``last`` or an earlier block passed; return whether any is new."""
        tops = read_shard_tops(parse_boc(last.blocks[0].data, check_crc=False))
        passed = [_place(top) for top in tops]
        for one in [*self._held, *self._due]:
            if is_passed(_place(one), passed):
                self._held.pop(one, None)
                self._due.pop(one, None)
        known = {top.id for top in tops}
        found = [
            self._read(source, one, known, last.mc_seqno)
            for one in sorted(self._due, key=attrgetter("seqno"))
        ]
        return any(found)

    def _read(self, source: NodeSource, one: BlockId, tops: set[BlockId], mc_seqno: int) -> bool:
        """Read a reported block; return whether it can be decoded now.

        It can after the blocks that it follows, and after the masterchain block that it refers to.
        """
        if len(self._held) >= MAX_BLOCKS:
            return False
        try:
            block = source.find_signed(one)
        except BlockCorrupt as error:
            self._notify(f"a signed block cannot be read: {error}")
            del self._due[one]
            return False
        if block is None:
            if time.monotonic() - self._due[one] > WAIT_S:
                del self._due[one]
            return False
        header = read_header(parse_boc(block.data, check_crc=False))
        if header.master_ref_seqno > mc_seqno or not {*header.previous} <= tops | self._held.keys():
            return False
        del self._due[one]
        self._held[one] = block
        return True

    def _join(self, last: McBundle) -> McBundle:
        """Return the blocks as those of the masterchain block after ``last``."""
        mark, blocks = last.mark, tuple(self._held[one] for one in sorted(self._held))
        if mark is not None and mark.version is not None:
            mark = KeyMark(last.mc_seqno, None)
        return McBundle(last.mc_seqno + 1, blocks, mark)


def _place(one: BlockId | ShardTop) -> BlockPlace:
    return one.workchain, one.shard, one.seqno
