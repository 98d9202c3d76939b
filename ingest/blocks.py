"""The protocol of block sources, and the values that its methods return."""

from typing import Annotated, Protocol

import msgspec

from tonlake.lake.account import MASTERCHAIN

MASTERCHAIN_SHARD = -(1 << 63)
Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""A hash; its length is checked where msgspec reads it."""


class BlockId(msgspec.Struct, frozen=True, order=True):
    """Full id of a block (``tonNode.blockIdExt``); ``shard`` is signed 64-bit."""

    workchain: int
    shard: int
    seqno: int
    root_hash: Hash
    file_hash: Hash

    def __str__(self) -> str:
        """Return the short form that node files use, such as ``(-1,8000000000000000,100)``."""
        return f"({self.workchain},{self.shard & 0xFFFFFFFFFFFFFFFF:016x},{self.seqno})"


def name_mc_block(mc_seqno: int, root_hash: bytes = b"", file_hash: bytes = b"") -> BlockId:
    """Return the id of a masterchain block, by default with unknown hashes."""
    return BlockId(MASTERCHAIN, MASTERCHAIN_SHARD, mc_seqno, root_hash, file_hash)


class RawBlock(msgspec.Struct, frozen=True):
    """A block's id and its bag of cells as stored, not verified yet.

    ``proof`` is the stored BlockProof, ``mc_extra`` the McBlockExtra of a masterchain block that
    has a proof, both as bags of cells; None if the source has none or is configured to skip them.
    """

    id: BlockId
    data: bytes
    proof: bytes | None = None
    mc_extra: bytes | None = None


class KeyMark(msgspec.Struct, frozen=True):
    """The configuration under which a masterchain block was created, and the one it introduces.

    ``before`` is the seqno of the last key block before it, whose configuration applies to it; 0
    is the zero state. ``version`` is the global version in the configuration of a key block; None
    for other blocks.
    """

    before: int
    version: int | None


class McBundle(msgspec.Struct, frozen=True):
    """A masterchain block followed by the shard blocks it commits, by workchain, shard, seqno.

    ``versions`` maps seqnos of key blocks (``BlockInfo.prev_key_block_seqno``) to the global
    versions of their configurations, as far as they are known.
    """

    mc_seqno: int
    blocks: tuple[RawBlock, ...]
    mark: KeyMark | None = None
    versions: dict[int, int] = {}


class ZeroState(msgspec.Struct, frozen=True):
    """The initial state of a workchain, as in the operator's file."""

    workchain: int
    root_hash: bytes
    file_hash: bytes
    data: bytes


class McHead(msgspec.Struct, frozen=True):
    """The root hash of a masterchain block, and its gen_utime in Unix seconds if known."""

    mc_seqno: int
    root_hash: bytes
    gen_utime: int | None


class BlockSource(Protocol):
    """Masterchain blocks with the shard blocks they commit; SourceError if it cannot be read."""

    def refresh(self) -> None:
        """Catch up with a node that is still writing."""

    def first_mc_seqno(self) -> int:
        """Return the oldest masterchain seqno that this source can read."""

    def last_mc_seqno(self) -> int:
        """Return the newest masterchain seqno that is complete with all its shard blocks."""

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return one masterchain block and the shard blocks it commits.

        Raises BlockNotYet if the node has not finished writing it, BlockPruned if the node has
        deleted it, BlockNeverHad if the node never stored it, BlockCorrupt if it is stored with
        wrong bytes.
        """

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        """Like ``read_bundle``, but the file hashes of shard blocks may be left unverified."""
        return self.read_bundle(mc_seqno)

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the masterchain block of this source at a seqno; None if it has none."""

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return the zero states of this source, the masterchain's first; by default none."""
        return ()

    def describe(self) -> dict[str, str]:
        """Return the fingerprint for the commit log; it contains no local path."""

    def close(self) -> None:
        """Close every open file."""
