"""Writes a node folder of any size: repeated genuine blocks, linked to one chain."""

import random
from functools import cached_property
from pathlib import Path

import msgspec

from tests.ingest.source.node.nodewriter import NodeWriter
from tests.made.blocks import DATA, read_packs, unpack_demo
from tests.made.template import Last, Link, Place, Template
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
REMEMBERED_MC_BLOCKS = 64
"""A chain goes back by fewer."""


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

    def shards(self, name: str) -> list[bytes]:
        """Return the blocks that are repeated in random order: this one."""
        return [self.shard(name)]


class LinkedHeader(msgspec.Struct, frozen=True):
    """The node's own record of a block."""

    previous: tuple[BlockId, ...]
    end_lt: int
    gen_utime: int


class Chain:
    """A growing chain: each masterchain block commits a fixed number of blocks of each shard."""

    def __init__(self, moulds: Moulds, name: str, shard_blocks: int = 1, shards: int = 1) -> None:
        """Take the genuine blocks, and the name of those that are repeated."""
        blocks = moulds.shards(name)
        low_bits = max(Template(data, GLOBAL_ID).low_bits for data in (*blocks, moulds.master))
        self._blocks = [Template(data, GLOBAL_ID, low_bits) for data in blocks]
        self._master = Template(moulds.master, GLOBAL_ID, low_bits, shards)
        self._shard_blocks = shard_blocks
        width = (1 << 64) // shards
        unsigned = range(width // 2, 1 << 64, width)
        self._shards = [shard - (shard >> 63 << 64) for shard in unsigned]
        self._dice = random.Random(shards)  # noqa: S311 - a repeatable choice
        self._number = 0
        self.mc_seqno = 0
        self._last: dict[int, Link] = {}
        self._last_master: Link | None = None
        self._earlier: dict[int, tuple[dict[int, Link], Link, list[dict[int, Last]]]] = {}
        self.headers: dict[BlockId, LinkedHeader] = {}
        """Headers of the newest bundle."""

    @property
    def transactions_per_mc_block(self) -> int:
        """Transactions of a masterchain block and of the shard blocks that it commits."""
        return self._master.transactions + self._blocks[0].transactions * self._shard_blocks

    def grow(self) -> McBundle:
        """Return the next masterchain block and the shard blocks that it commits."""
        self.mc_seqno += 1
        self.headers = {}
        utime = FIRST_UTIME + BLOCK_S * self.mc_seqno
        blocks = []
        for shard in self._shards * self._shard_blocks:
            self._number += 1
            last = self._last.get(shard)
            seqno = 1 if last is None else last.id.seqno + 1
            place = Place(self._number, seqno, utime, last, self._last_master, shard=shard)
            raw, self._last[shard] = self._copy(self._dice.choice(self._blocks), place)
            blocks.append(raw)
        tops = tuple(self._last[shard] for shard in self._shards)
        place = Place(self._number, self.mc_seqno, utime, self._last_master, tops=tops)
        raw, self._last_master = self._copy(self._master, place)
        accounts = [mould.last.copy() for mould in (*self._blocks, self._master)]
        self._earlier[self.mc_seqno] = self._last.copy(), self._last_master, accounts
        self._earlier.pop(self.mc_seqno - REMEMBERED_MC_BLOCKS, None)
        return McBundle(self.mc_seqno, (raw, *blocks))

    def go_back(self, mc_seqno: int) -> None:
        """Continue after an earlier masterchain block, with others than before."""
        last, self._last_master, accounts = self._earlier[mc_seqno]
        self.mc_seqno, self._last = mc_seqno, last.copy()
        for mould, before in zip((*self._blocks, self._master), accounts, strict=True):
            mould.last = before.copy()

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
