"""Writes a node folder of any size: repeated genuine blocks, linked to one chain."""

from functools import cached_property
from pathlib import Path

import msgspec

from tests.ingest.source.node.nodewriter import NodeWriter
from tests.made.blocks import DATA, read_packs, unpack_demo
from tests.made.template import Link, Place, Template
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.header import read_header, read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc

DEMO_BLOCK = "the largest block of the demo node"
LARGE = "blocks/mainnet_0_8000000000000000_30816553.boc"
MIDDLING = "bundles/0.8000000000000000_56703839_5b25cdef/mainnet_0_8000000000000000_56703836.boc"
WHOLE_SHARD = -(1 << 63)
GLOBAL_ID = -239
FIRST_UTIME = 1_700_000_000
BLOCK_S = 5


class Moulds:
    """The genuine blocks from which chains are built."""

    def __init__(self, scratch: Path) -> None:
        """Remember where to unpack the demo node."""
        self._scratch = scratch

    @cached_property
    def _demo(self) -> list[RawBlock]:
        return read_packs(unpack_demo(self._scratch))

    @cached_property
    def master(self) -> bytes:
        """A masterchain block over one shard, from the demo node; not a key block."""
        for raw in self._demo:
            if raw.id.workchain != -1:
                continue
            tree = parse_boc(raw.data)
            shards = [top.shard for top in read_shard_tops(tree)]
            if shards == [WHOLE_SHARD] and not read_header(tree).key_block:
                return raw.data
        raise ValueError("the demo node has no masterchain block over one shard")

    def shard(self, name: str) -> bytes:
        """Return a block of the reference data, or else the demo node's largest block."""
        if (DATA / name).exists():
            return (DATA / name).read_bytes()
        whole = [raw for raw in self._demo if raw.id.shard == WHOLE_SHARD and raw.id.workchain == 0]
        plain = (raw for raw in whole if not read_header(parse_boc(raw.data)).after_merge)
        return max(plain, key=lambda raw: len(raw.data)).data


class LinkedHeader(msgspec.Struct, frozen=True):
    """The node's own record of a block."""

    previous: tuple[BlockId, ...]
    end_lt: int
    gen_utime: int


class Chain:
    """A growing chain: each masterchain block commits a fixed number of copies of a shard block."""

    def __init__(self, moulds: Moulds, name: str, shard_blocks: int = 1) -> None:
        """Take the genuine blocks, and the name of the one that is repeated."""
        blocks = moulds.shard(name), moulds.master
        low_bits = max(Template(data, GLOBAL_ID).low_bits for data in blocks)
        self._shard, self._master = (Template(data, GLOBAL_ID, low_bits) for data in blocks)
        self._shard_blocks = shard_blocks
        self._number = 0
        self._seqno = 0
        self.mc_seqno = 0
        self._last: Link | None = None
        self._last_master: Link | None = None
        self.headers: dict[BlockId, LinkedHeader] = {}
        """Headers of the newest bundle."""

    @property
    def transactions_per_mc_block(self) -> int:
        """Transactions of a masterchain block and of the shard blocks that it commits."""
        return self._master.transactions + self._shard.transactions * self._shard_blocks

    def grow(self) -> McBundle:
        """Return the next masterchain block and the shard blocks that it commits."""
        self.mc_seqno += 1
        self.headers = {}
        utime = FIRST_UTIME + BLOCK_S * self.mc_seqno
        blocks = []
        for _ in range(self._shard_blocks):
            self._number, self._seqno = self._number + 1, self._seqno + 1
            place = Place(self._number, self._seqno, utime, self._last, master=self._last_master)
            raw, self._last = self._copy(self._shard, place)
            blocks.append(raw)
        place = Place(self._number, self.mc_seqno, utime, self._last_master, top=self._last)
        raw, self._last_master = self._copy(self._master, place)
        return McBundle(self.mc_seqno, (raw, *blocks))

    def _copy(self, mould: Template, place: Place) -> tuple[RawBlock, Link]:
        raw, link = mould.copy(place)
        zero = BlockId(raw.id.workchain, raw.id.shard, 0, bytes(32), bytes(32))
        previous = zero if place.prev is None else place.prev.id
        self.headers[raw.id] = LinkedHeader((previous,), link.end_lt, place.utime)
        return raw, link


class ChainWriter(NodeWriter):
    """Writes a chain as a node does; headers are known without decoding the blocks again."""

    def __init__(self, db_dir: Path, chain: Chain) -> None:
        """Start with an empty folder."""
        super().__init__(db_dir, buffer_bytes=64 << 20)
        self._chain = chain

    def read_header(self, block: RawBlock) -> LinkedHeader:
        """Return the properties of the chain."""
        return self._chain.headers[block.id]

    def append(self) -> int:
        """Write the next masterchain block and its shard blocks; return their transaction count."""
        self.write_bundle(self._chain.grow())
        return self._chain.transactions_per_mc_block
