"""Reads TL values of a node's stores: constructors, numbers, vectors, block ids.

Everything is little-endian; constructor ids are from ``ton_api.tl`` (the CRC32 of each line of
the schema). A boxed object starts with its constructor, a bare one does not.
"""

import struct
from collections.abc import Callable
from typing import TypeVar

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import SourceError

T = TypeVar("T")

BLOCK_INFO = 0x4AC6E727  # db.block.info
BLOCK_HANDLE_KEY = 0x7F57D173  # db.blockdb.key.value
INDEX_KEY = 0x7DC40502  # db.files.index.key
INDEX_VALUE = 0xA2B1DAFC  # db.files.index.value
PACKAGE_KEY = 0xA504033E  # db.files.package.key
PACKAGE_VALUE = 0xE44CD52B  # db.files.package.value
LT_DESC_KEY = 0xF1E3E791  # db.lt.desc.key
LT_DESC_VALUE = 0x71AF51B4  # db.lt.desc.value
BLOCK_FILE_KEY = 0xB0EAE471  # db.filedb.key.blockFile
PROOF_KEY = 0xDA954DEC  # db.filedb.key.proof
PROOF_LINK_KEY = 0x98FBC5CE  # db.filedb.key.proofLink
CANDIDATE_KEY = 0xE28A0AB9  # db.filedb.key.candidate
CANDIDATE_REF_KEY = 0xE64D42BE  # db.filedb.key.candidateRef
CANDIDATE = 0x65D96ADA  # db.candidate
CANDIDATE_ID = 0x37C0B287  # db.candidate.id
ZERO_STATE_FILE_KEY = 0x1252863D  # db.filedb.key.zeroStateFile
BLOCK_SIGNED = 0xC872C8C2  # db.event.blockSigned
CELLDB_VALUE = 0xE6101440  # db.celldb.value
DB_VERSION_KEY = 0x724F2154  # db.state.key.dbVersion
DB_VERSION = 0xD93720F7  # db.state.dbVersion
INIT_BLOCK_ID = 0x732C9CF5  # db.state.initBlockId
SHARD_CLIENT = 0x0B16A69D  # db.state.shardClient

BOOL_TRUE = bytes.fromhex("b5757299")
BOOL_FALSE = bytes.fromhex("379779bc")

BLOCK_ID_BYTES = 80
EVENT_BYTES = 84
PUBLIC_KEY_BYTES = 36
_LONG = 254
"""First byte of ``bytes`` whose length follows in three bytes."""
VECTOR_LIMIT = 1 << 22
"""Maximum vector length; the longest genuine one lists a few thousand packages."""

_BLOCK_ID = struct.Struct("<iqi32s32s")


def pack_block_id(block_id: BlockId) -> bytes:
    """Return the 80 bytes of a bare ``tonNode.blockIdExt``."""
    one = block_id  # half the time that astuple() takes
    return _BLOCK_ID.pack(one.workchain, one.shard, one.seqno, one.root_hash, one.file_hash)


def pack_constructor(constructor: int) -> bytes:
    """Return the four bytes of a constructor on disk."""
    return constructor.to_bytes(4, "little")


class TlReader:
    """Reads consecutive TL values; ``what`` names the bytes in errors (SourceError)."""

    def __init__(self, data: bytes, what: str, constructor: int | None = None) -> None:
        """Start at the first byte of ``data``, or after the constructor that it must begin with."""
        self.data = data
        self.what = what
        self.position = 0
        if constructor is not None:
            found = int.from_bytes(self.read_bytes(4), "little")
            if found != constructor:
                self.position = 0
                raise self.fail(f"constructor {constructor:08x} expected, found {found:08x}")

    def fail(self, reason: str) -> SourceError:
        """Return an error with ``reason`` and the position in these bytes."""
        return SourceError(f"{self.what}: {reason} at byte {self.position} of {len(self.data)}")

    def read_bytes(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self.position + size
        if end > len(self.data):
            raise self.fail(f"{size} bytes expected, but the value ends too early")
        found = self.data[self.position : end]
        self.position = end
        return found

    def read_int(self) -> int:
        """Return a signed 32-bit integer."""
        return int.from_bytes(self.read_bytes(4), "little", signed=True)

    def read_bool(self) -> bool:
        """Return a boxed ``Bool``."""
        found = self.read_bytes(4)
        if found not in (BOOL_TRUE, BOOL_FALSE):
            self.position -= 4
            raise self.fail("no Bool")
        return found == BOOL_TRUE

    def read_block_id(self) -> BlockId:
        """Return a bare ``tonNode.blockIdExt``."""
        return BlockId(*_BLOCK_ID.unpack(self.read_bytes(BLOCK_ID_BYTES)))

    def read_text(self) -> bytes:
        """Return bare ``bytes``, without skipping what pads them."""
        size = self.read_bytes(1)[0]
        return self.read_bytes(
            int.from_bytes(self.read_bytes(3), "little") if size == _LONG else size
        )

    def read_vector(self, read_item: Callable[[], T]) -> list[T]:
        """Return the items of a bare vector of bare items."""
        count = int.from_bytes(self.read_bytes(4), "little")
        if count > VECTOR_LIMIT:
            self.position -= 4
            raise self.fail(f"a vector of {count} items")
        return [read_item() for _ in range(count)]

    def expect_end(self) -> None:
        """Raise SourceError unless all bytes were read."""
        if self.position != len(self.data):
            raise self.fail("bytes are left over")
