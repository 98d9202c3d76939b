"""The protocol of block sources, and the values they return."""

from __future__ import annotations

from typing import Protocol

import msgspec


class BlockId(msgspec.Struct, frozen=True, order=True):
    """Full id of a block (``tonNode.blockIdExt``); ``shard`` is signed 64-bit."""

    workchain: int
    shard: int
    seqno: int
    root_hash: bytes
    file_hash: bytes

    def __str__(self) -> str:
        """Return the short form that node files use, such as ``(-1,8000000000000000,100)``."""
        return f"({self.workchain},{self.shard & 0xFFFFFFFFFFFFFFFF:016x},{self.seqno})"


class RawBlock(msgspec.Struct, frozen=True):
    """A block's id and its bag of cells as stored; nothing about it is checked yet.

    ``proof`` is its BlockProof as stored, and ``mc_extra`` of a masterchain block with a proof
    its McBlockExtra, both as bags; None where the source has none, or is not to give them.
    """

    id: BlockId
    data: bytes
    proof: bytes | None = None
    mc_extra: bytes | None = None


class KeyMark(msgspec.Struct, frozen=True):
    """Which configuration a masterchain block was made under, or brings.

    ``before`` is the seqno of the last key block before it, whose configuration it was made under;
    0 stands for the zero state. ``version`` is the global version of the configuration that a key
    block brings, None in every other block.
    """

    before: int
    version: int | None


class McBundle(msgspec.Struct, frozen=True):
    """A masterchain block, first, and the shard blocks it commits, by workchain, shard, seqno.

    ``versions`` has the global versions of the configurations that its blocks were made under, by
    the key block that brought each (``BlockInfo.prev_key_block_seqno``), as far as they are known.
    """

    mc_seqno: int
    blocks: tuple[RawBlock, ...]
    mark: KeyMark | None = None
    versions: dict[int, int] = {}


class ZeroState(msgspec.Struct, frozen=True):
    """The state a workchain began with, as the operator's file gives it."""

    workchain: int
    root_hash: bytes
    file_hash: bytes
    data: bytes


class McHead(msgspec.Struct, frozen=True):
    """Which masterchain block has a seqno, and its time in Unix seconds, where known."""

    mc_seqno: int
    root_hash: bytes
    gen_utime: int | None


class BlockSource(Protocol):
    """Masterchain blocks with all shard blocks they commit, as raw bytes with ids.

    Every method raises SourceError if the source cannot be read.
    """

    def refresh(self) -> None:
        """Catch up with a node that is writing."""

    def first_mc_seqno(self) -> int:
        """Return the oldest masterchain seqno that this source can give."""

    def last_mc_seqno(self) -> int:
        """Return the newest masterchain seqno that is complete with all its shard blocks."""

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return one masterchain block and what it commits.

        Raises:
            BlockNotYet: not written completely yet.
            BlockPruned: deleted by the node.
            BlockNeverHad: never stored.
            BlockCorrupt: stored with wrong bytes.
        """

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        """Do what ``read_bundle`` does, but file hashes of shard blocks may be left unchecked.

        It is for those who decode the blocks at once: that checks them, many together.
        """

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return which masterchain block this source has at a seqno; None if it has none."""

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return the zero states that this source holds, masterchain first."""

    def describe(self) -> dict[str, str]:
        """Return the fingerprint that the commit log keeps; names no path of this machine."""

    def close(self) -> None:
        """Close every open file."""
