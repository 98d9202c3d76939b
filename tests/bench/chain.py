"""A folder of archive packages of any size: genuine blocks repeated and linked to one chain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ingest.block.header import read_header
from ingest.block.shard import read_shard_tops
from ingest.cell.boc import parse_boc
from ingest.node.package import ENTRY_HEADER, ENTRY_MAGIC, FILE_MAGIC, format_entry_name
from tests.bench.blocks import DATA, read_packs, unpack_demo
from tests.bench.template import Link, Place, Template

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ingest.source import RawBlock

LARGE = "blocks/mainnet_0_8000000000000000_30816553.boc"
MIDDLING = "bundles/0.8000000000000000_56703839_5b25cdef/mainnet_0_8000000000000000_56703836.boc"
WHOLE_SHARD = -(1 << 63)
GLOBAL_ID = -239
FIRST_UTIME = 1_700_000_000
BLOCK_S = 5
MC_BLOCKS_PER_PACKAGE = 50


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

    def shard(self, name: str) -> bytes:
        """Return a block of the reference data, or without it the demo node's largest."""
        if (DATA / name).exists():
            return (DATA / name).read_bytes()
        whole = [raw for raw in self._demo if raw.id.shard == WHOLE_SHARD and raw.id.workchain == 0]
        plain = (raw for raw in whole if not read_header(parse_boc(raw.data)).after_merge)
        return max(plain, key=lambda raw: len(raw.data)).data


class Chain:
    """A chain that grows: each masterchain block commits so many copies of a shard block."""

    def __init__(self, moulds: Moulds, name: str, shard_blocks: int = 1) -> None:
        """Take the moulds and the name of the shard's."""
        shard, master = moulds.shard(name), moulds.master
        low_bits = max(Template(data, GLOBAL_ID).low_bits for data in (shard, master))
        self._shard = Template(shard, GLOBAL_ID, low_bits)
        self._master = Template(master, GLOBAL_ID, low_bits)
        self._shard_blocks = shard_blocks
        self._number = 0
        self._seqno = 0
        self.mc_seqno = 0
        self._last: Link | None = None
        self._last_master: Link | None = None

    @property
    def transactions_per_mc_block(self) -> int:
        """Transactions of a masterchain block and of what it commits."""
        return self._master.transactions + self._shard.transactions * self._shard_blocks

    def grow(self) -> list[RawBlock]:
        """Return the next masterchain block and, before it, what it commits."""
        self.mc_seqno += 1
        utime = FIRST_UTIME + BLOCK_S * self.mc_seqno
        blocks = []
        for _ in range(self._shard_blocks):
            self._number, self._seqno = self._number + 1, self._seqno + 1
            place = Place(self._number, self._seqno, utime, self._last, master=self._last_master)
            raw, self._last = self._shard.copy(place)
            blocks.append(raw)
        place = Place(self._number, self.mc_seqno, utime, self._last_master, top=self._last)
        raw, self._last_master = self._master.copy(place)
        return [*blocks, raw]


def write_packages(chain: Chain, folder: Path, transactions: int) -> int:
    """Write packages until they hold so many transactions; return how many they hold."""
    written = 0
    while written < transactions:
        written += append_block(chain, folder)
    return written


def append_block(chain: Chain, folder: Path) -> int:
    """Append the next masterchain block to its package; return its transactions."""
    blocks = chain.grow()
    first = chain.mc_seqno - (chain.mc_seqno - 1) % MC_BLOCKS_PER_PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"archive.{first:05}.pack").open("ab") as package:
        if not package.tell():
            package.write(FILE_MAGIC.to_bytes(4, "little"))
        package.writelines(_list_entries(blocks))
    return chain.transactions_per_mc_block


def _list_entries(blocks: list[RawBlock]) -> Iterator[bytes]:
    for raw in blocks:
        name = format_entry_name(raw.id).encode()
        yield ENTRY_HEADER.pack(ENTRY_MAGIC, len(name), len(raw.data))
        yield name
        yield raw.data
