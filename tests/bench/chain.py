"""A node's folder of any size: genuine blocks repeated, or made ones, linked to one chain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from tests.bench.blocks import DATA, read_packs, unpack_demo
from tests.bench.network.block import NetworkBlocks
from tests.bench.network.code import read_codes
from tests.bench.network.traffic import Network
from tests.bench.template import Link, Place, Template
from tests.ingest.source.node.nodewriter import NodeWriter
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.block.shard import read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.network.code import Codes

NETWORK = "a network of wallets, jettons and an exchange"
LARGE = "blocks/mainnet_0_8000000000000000_30816553.boc"
MIDDLING = "bundles/0.8000000000000000_56703839_5b25cdef/mainnet_0_8000000000000000_56703836.boc"
WHOLE_SHARD = -(1 << 63)
GLOBAL_ID = -239
FIRST_UTIME = 1_700_000_000
BLOCK_S = 5


class Moulds:
    """The genuine blocks that chains are made of."""

    def __init__(self, scratch: Path) -> None:
        """Remember where the demo node may be unpacked."""
        self._scratch = scratch

    @cached_property
    def _demo(self) -> list[RawBlock]:
        return read_packs(unpack_demo(self._scratch))

    @cached_property
    def master(self) -> bytes:
        """A masterchain block over one shard, of the demo node, no key block."""
        for raw in self._demo:
            if raw.id.workchain != -1:
                continue
            tree = parse_boc(raw.data)
            shards = [top.shard for top in read_shard_tops(tree)]
            if shards == [WHOLE_SHARD] and not read_header(tree).key_block:
                return raw.data
        raise ValueError("the demo node has no masterchain block over one shard")

    @cached_property
    def codes(self) -> Codes:
        """Codes of the demo node's contracts."""
        return read_codes(self._scratch)

    def shard(self, name: str) -> bytes:
        """Return a block of the reference data, or without it the demo node's largest."""
        if (DATA / name).exists():
            return (DATA / name).read_bytes()
        whole = [raw for raw in self._demo if raw.id.shard == WHOLE_SHARD and raw.id.workchain == 0]
        plain = (raw for raw in whole if not read_header(parse_boc(raw.data)).after_merge)
        return max(plain, key=lambda raw: len(raw.data)).data


class LinkedHeader(msgspec.Struct, frozen=True):
    """What a node's own record of a block says."""

    previous: tuple[BlockId, ...]
    end_lt: int
    gen_utime: int


class Mould(Protocol):
    """What blocks of a chain are made of."""

    @property
    def transactions(self) -> int:
        """Number of transactions in the newest block."""

    def copy(self, place: Place) -> tuple[RawBlock, Link]:
        """Return the block that stands at a place, and how to refer to it."""


class Chain:
    """A chain that grows: each masterchain block commits so many copies of a shard block."""

    def __init__(self, moulds: Moulds, name: str, shard_blocks: int = 1) -> None:
        """Take the moulds and the name of the shard's: ``NETWORK`` for blocks of all sorts."""
        self._shard, self._master = _make_moulds(moulds, name)
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
        """Transactions of a masterchain block and of what it commits."""
        return self._master.transactions + self._shard.transactions * self._shard_blocks

    def grow(self) -> McBundle:
        """Return the next masterchain block and what it commits."""
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

    def _copy(self, mould: Mould, place: Place) -> tuple[RawBlock, Link]:
        raw, link = mould.copy(place)
        zero = BlockId(raw.id.workchain, raw.id.shard, 0, bytes(32), bytes(32))
        previous = zero if place.prev is None else place.prev.id
        self.headers[raw.id] = LinkedHeader((previous,), link.end_lt, place.utime)
        return raw, link


def _make_moulds(moulds: Moulds, name: str) -> tuple[Mould, Template]:
    """Return the moulds of shard blocks and of masterchain blocks, whose times go together."""
    if name == NETWORK:
        master = Template(moulds.master, GLOBAL_ID)
        return NetworkBlocks(Network(moulds.codes), GLOBAL_ID, master.lt_step), master
    shard = moulds.shard(name)
    low_bits = max(Template(data, GLOBAL_ID).low_bits for data in (shard, moulds.master))
    return Template(shard, GLOBAL_ID, low_bits), Template(moulds.master, GLOBAL_ID, low_bits)


class ChainWriter(NodeWriter):
    """Writes a chain as a node does; its headers are known without reading the blocks again."""

    def __init__(self, db_dir: Path, chain: Chain) -> None:
        """Begin an empty folder."""
        super().__init__(db_dir, buffer_bytes=64 << 20)
        self._chain = chain

    def read_header(self, block: RawBlock) -> LinkedHeader:
        """Return what the chain knows."""
        return self._chain.headers[block.id]

    def append(self) -> int:
        """Write the next masterchain block and what it commits; return its transactions."""
        self.write_bundle(self._chain.grow())
        return self._chain.transactions_per_mc_block
