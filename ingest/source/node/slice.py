"""Reads slices of the archive: each has an index (RocksDB) and the packages it points into.

A slice covers the masterchain blocks from its id up to the next slice, and the shard blocks they
commit. Its packages cover ``slice_size`` masterchain blocks each; there are three layouts:

    new      ``shard_split_depth`` is set: one file for the masterchain and one per shard prefix
    old      one file per package for all shards
    oldest   ``status`` is a number: one file for the whole slice

``files/globalindex`` lists the slices, and whether each was deleted. A block's handle
(``db.block.info``) is its id, 32 flag bits, and those fields whose flag is set.
"""

import bisect
import hashlib
import re
import struct
from collections import OrderedDict
from enum import IntEnum
from functools import cache, reduce
from operator import or_
from pathlib import Path

import msgspec

from tonlake.ingest.blocks import MASTERCHAIN_SHARD, BlockId
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node import tl
from tonlake.ingest.source.node.package import EntryPlace, OpenFiles
from tonlake.ingest.source.node.rocks import FollowedStore, Scratch
from tonlake.lake.account import MASTERCHAIN

HANDLE_PREFIX = tl.pack_constructor(tl.BLOCK_HANDLE_KEY)


class HandleFlag(IntEnum):
    """The bits of ``db.block.info.flags`` (``validator/block-handle.hpp``) used here."""

    PREV_LEFT = 1 << 1
    PREV_RIGHT = 1 << 2
    NEXT_LEFT = 1 << 3
    NEXT_RIGHT = 1 << 4
    LT_KNOWN = 1 << 13
    TIME_KNOWN = 1 << 14
    STATE_HASH_KNOWN = 1 << 17
    ARCHIVED = 1 << 21
    MASTERCHAIN_REF_KNOWN = 1 << 23


_PREV = (HandleFlag.PREV_LEFT, HandleFlag.PREV_RIGHT)
_TIME_KNOWN, _REF_KNOWN = int(HandleFlag.TIME_KNOWN), int(HandleFlag.MASTERCHAIN_REF_KNOWN)
_BLOCK_ID = "iqi32s32s"
_FIELDS = (
    *((flag, _BLOCK_ID) for flag in _PREV),
    (HandleFlag.NEXT_LEFT, f"{tl.BLOCK_ID_BYTES}x"),
    (HandleFlag.NEXT_RIGHT, f"{tl.BLOCK_ID_BYTES}x"),
    (HandleFlag.LT_KNOWN, "8x"),
    (HandleFlag.TIME_KNOWN, "I"),
    (HandleFlag.STATE_HASH_KNOWN, "32x"),
    (HandleFlag.MASTERCHAIN_REF_KNOWN, "I"),
)
"""The fields after the flags, in order; those that are not used are skipped."""
_SIZED = reduce(or_, (flag for flag, _ in _FIELDS))
_ID_AT, _FLAGS_AT = slice(4, 84), slice(84, 88)


class BlockHandle(msgspec.Struct, frozen=True):
    """A block's position in the chain and its processing status in the node.

    ``unixtime`` is its gen_utime, ``masterchain_ref`` the seqno of the masterchain block that
    commits it, its own if it is one; None while the node does not know it.
    """

    id: BlockId
    flags: int
    prev: tuple[BlockId, ...]
    unixtime: int | None
    masterchain_ref: int | None


def pack_handle_key(block_id: BlockId) -> bytes:
    """Return the key of a block's handle: boxed ``db.blockdb.key.value``."""
    return HANDLE_PREFIX + tl.pack_block_id(block_id)


def unpack_handle_key(key: bytes, what: str) -> BlockId:
    """Return the block id in the key of a handle; ``what`` names the store in errors."""
    reader = tl.TlReader(key, f"{what}: key of a handle", tl.BLOCK_HANDLE_KEY)
    block_id = reader.read_block_id()
    reader.expect_end()
    return block_id


def pack_handle_prefix(workchain: int, shard: int, seqno: int) -> bytes:
    """Return the common prefix of the handle keys of this workchain, shard and seqno."""
    return pack_handle_key(BlockId(workchain, shard, seqno, b"", b""))[:20]


@cache
def _choose_form(flags: int) -> tuple[struct.Struct, tuple[slice, ...]]:
    """Return the form of a ``db.block.info`` with these flags, and which fields are ids before."""
    count = sum(flags & flag != 0 for flag in _PREV)
    rest = "".join(form for flag, form in _FIELDS if flag & flags)
    prev = tuple(slice(at, at + 5) for at in range(0, 5 * count, 5))
    return struct.Struct(f"<I{_BLOCK_ID}I{rest}"), prev


def read_handle(data: bytes, what: str) -> BlockHandle:
    """Read a boxed ``db.block.info``; ``what`` names the store in errors."""
    flags = int.from_bytes(data[_FLAGS_AT], "little")
    form, prev = _choose_form(flags & _SIZED)
    if len(data) != form.size:
        flaw = "ends too early" if len(data) < form.size else "has bytes left over"
        raise SourceError(f"{what}: a handle of {len(data)} bytes {flaw}")
    constructor, workchain, shard, seqno, root_hash, file_hash, _, *fields = form.unpack(data)
    if constructor != tl.BLOCK_INFO:
        raise SourceError(f"{what}: a handle with the constructor {constructor:08x}")
    committed_by = fields[-1] if flags & _REF_KNOWN else None
    return BlockHandle(
        BlockId(workchain, shard, seqno, root_hash, file_hash),
        flags,
        tuple([BlockId(*fields[at]) for at in prev]),
        fields[5 * len(prev)] if flags & _TIME_KNOWN else None,
        seqno if workchain == MASTERCHAIN else committed_by,
    )


PACKAGES_FOLDER = "archive/packages"
SLICES_PER_FOLDER = 100_000
SLICED = b"sliced"
_INFO = re.compile(r"(\d+)\.(-?\d+)[:_]([0-9a-f]{16})")
_LT_DESC_KEY = struct.Struct("<Iiq")
_UNSIGNED = (1 << 64) - 1

PackageKey = tuple[int, int, int]


def name_package_folder(package: int) -> str:
    """Return the folder of a package or slice, relative to the node's folder."""
    return f"{PACKAGES_FOLDER}/arch{package // SLICES_PER_FOLDER:04d}"


def shard_prefix(shard: int, depth: int) -> int:
    """Return the ancestor of a shard at ``depth``; for a shorter prefix, its left-most child."""
    bits = shard & _UNSIGNED
    corner = bits & (bits - 1)
    mark = 1 << (63 - depth)
    prefix = (corner & ~((mark << 1) - 1)) | mark
    return prefix - (1 << 64) if prefix >> 63 else prefix


class Slice:
    """An open slice; its methods raise SourceError if the index is damaged or inconsistent."""

    def __init__(self, db_dir: Path, slice_id: int, name: str, scratch: Scratch) -> None:
        """Open the index whose folder is called ``name``, relative to the node's."""
        self.db_dir = db_dir
        self.id = slice_id
        self.store = FollowedStore(db_dir / name, name, scratch)
        self._packages: dict[PackageKey, int] = {}
        self._found: dict[PackageKey, EntryPlace] = {}
        """Where packages begin, by their first masterchain block and the shard of a block."""
        self._files = OpenFiles()
        self._read_layout()

    def catch_up(self) -> bool:
        """Make the node's new writes visible; return False if its files did not change."""
        self._forget_packages()
        changed = self.store.catch_up()
        if changed:
            self._read_layout()
        return changed

    def close(self) -> None:
        """Close the index and the packages."""
        self._forget_packages()
        self.store.close()

    def _forget_packages(self) -> None:
        self._found.clear()
        self._files.close()

    def find_handle(self, block_id: BlockId) -> BlockHandle | None:
        """Return the handle of a block; None if this slice has none."""
        key = pack_handle_key(block_id)
        value = self.store.get(key)
        return None if value is None else self._read_handle(key, value)

    def find_root_handle(self, workchain: int, seqno: int) -> BlockHandle | None:
        """Return the handle of a masterchain block or zero state, one that was archived if any."""
        prefix = pack_handle_prefix(workchain, MASTERCHAIN_SHARD, seqno)
        handles = [self._read_handle(key, value) for key, value in self.store.scan(prefix)]
        archived = [one for one in handles if one.flags & HandleFlag.ARCHIVED] or handles
        return archived[0] if archived else None

    def list_mc_ids(self, mc_seqno: int | None = None) -> list[BlockId]:
        """Return the ids of the masterchain blocks with a handle here, of one seqno or of any."""
        prefix = pack_handle_prefix(MASTERCHAIN, MASTERCHAIN_SHARD, mc_seqno or 0)
        keys = self.store.scan(prefix[:-4] if mc_seqno is None else prefix)
        return [unpack_handle_key(key, self.store.name) for key, _ in keys]

    def last_mc_seqno(self) -> int | None:
        """Return the newest masterchain block in the slice's lt index; None if there is none."""
        value = self.store.get(_LT_DESC_KEY.pack(tl.LT_DESC_KEY, MASTERCHAIN, MASTERCHAIN_SHARD))
        if value is None:
            return None
        reader = tl.TlReader(value, f"{self.store.name}: db.lt.desc.value", tl.LT_DESC_VALUE)
        _first_index, _last_index = reader.read_int(), reader.read_int()
        return reader.read_int()

    def locate_proof(self, block_id: BlockId, mc_seqno: int) -> EntryPlace | None:
        """Return where the proof of a block committed by ``mc_seqno`` is; None if not indexed."""
        is_master = block_id.workchain == MASTERCHAIN
        return self.locate(block_id, mc_seqno, tl.PROOF_KEY if is_master else tl.PROOF_LINK_KEY)

    def locate(
        self, block_id: BlockId, mc_seqno: int, key: int = tl.BLOCK_FILE_KEY
    ) -> EntryPlace | None:
        """Return where a block committed by ``mc_seqno`` is, or what else ``key`` names of it."""
        return self.locate_file(
            tl.pack_constructor(key) + tl.pack_block_id(block_id), block_id, mc_seqno
        )

    def locate_file(self, file_key: bytes, block_id: BlockId, mc_seqno: int) -> EntryPlace | None:
        """Return where the file of a block with a boxed ``db.filedb.Key`` is; None if nowhere."""
        offset = self._number(hashlib.sha256(file_key).hexdigest().upper())
        if offset is None:
            return None
        package = self.id
        if self._size is not None:
            package += (mc_seqno - self.id) // self._size * self._size
        key = package, block_id.workchain, block_id.shard
        found = self._found.get(key) or self._find_package(key)
        if found is None:
            raise SourceError(
                f"{self.store.name}: has an offset for block {block_id}, but lists no package"
                f" {package} for it"
            )
        return EntryPlace(found.path, found.name, offset, found.bound, self._files)

    def _find_package(self, of_block: PackageKey) -> EntryPlace | None:
        package, workchain, shard = of_block
        if self._depth is None or workchain == MASTERCHAIN:
            key = package, MASTERCHAIN, MASTERCHAIN_SHARD
        else:
            key = package, workchain, shard_prefix(shard, self._depth)
        index = self._packages.get(key)
        if index is None:
            return None
        bound = self._number("status" if self._size is None else f"status.{index}")
        name = self._package_name(*key)
        found = EntryPlace(self.db_dir / name, name, 0, bound or 0)
        self._found[of_block] = found
        return found

    def _read_handle(self, key: bytes, value: bytes) -> BlockHandle:
        handle = read_handle(value, self.store.name)
        if key != HANDLE_PREFIX + value[_ID_AT]:
            block_id = unpack_handle_key(key, self.store.name)
            what = f"{self.store.name}: {block_id}"
            raise SourceError(f"{what}: its handle belongs to another block, {handle.id}")
        return handle

    def _package_name(self, package: int, workchain: int, shard: int) -> str:
        stem = f"{name_package_folder(package)}/archive.{package:05d}"
        if workchain == MASTERCHAIN:
            return f"{stem}.pack"
        # If both files exist, the node prefers the older separator.
        names = [f"{stem}.{workchain}{mark}{shard & _UNSIGNED:016x}.pack" for mark in ":_"]
        return next((name for name in names if (self.db_dir / name).exists()), names[-1])

    def _read_layout(self) -> None:
        status = self.store.get(b"status")
        if status is None:
            raise SourceError(f"{self.store.name}: no status: the index is empty or incomplete")
        self._depth = self._number("shard_split_depth")
        self._size: int | None = None
        if status != SLICED:
            self._packages = {(self.id, MASTERCHAIN, MASTERCHAIN_SHARD): 0}
            return
        self._size = self._number("slice_size")
        if not self._size:
            raise SourceError(f"{self.store.name}: sliced, but without a slice size")
        count = self._number("slices") or 0
        if count < len(self._packages):
            self._packages.clear()
        for index in range(len(self._packages), count):
            self._packages[self._read_package_key(index)] = index

    def _read_package_key(self, index: int) -> PackageKey:
        if self._depth is None:
            return self.id + (self._size or 0) * index, MASTERCHAIN, MASTERCHAIN_SHARD
        value = (self.store.get(f"info.{index}".encode()) or b"").decode("ascii", "replace")
        match = _INFO.fullmatch(value)
        if match is None:
            raise SourceError(f"{self.store.name}: info.{index} is {value!r}, no package")
        package, workchain, shard = match.groups()
        signed = int.from_bytes(bytes.fromhex(shard), "big", signed=True)
        return int(package), int(workchain), signed

    def _number(self, key: str) -> int | None:
        value = self.store.get(key.encode())
        if value is None:
            return None
        if not value.isdigit():
            raise SourceError(f"{self.store.name}: {key} is {value!r}, no number")
        return int(value)


def name_index(slice_id: int) -> str:
    """Return the folder of a slice's index, relative to the node's folder."""
    return f"{name_package_folder(slice_id)}/archive.{slice_id:05d}.index"


class SliceCache:
    """At most ``limit`` open slices; the least recently used is closed first."""

    def __init__(self, db_dir: Path, scratch: Scratch, limit: int) -> None:
        self.db_dir = db_dir
        self.scratch = scratch
        self.limit = limit
        self._open: OrderedDict[int, Slice] = OrderedDict()
        self._failed: dict[int, SourceError] = {}

    def open(self, slice_id: int) -> Slice:
        """Return an open slice; one that does not open is tried again after ``refresh`` only."""
        if slice_id in self._failed:
            raise self._failed[slice_id]
        if slice_id not in self._open:
            try:
                name = name_index(slice_id)
                self._open[slice_id] = Slice(self.db_dir, slice_id, name, self.scratch)
            except SourceError as error:
                self._failed[slice_id] = error
                raise
            while len(self._open) > self.limit:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(slice_id)
        return self._open[slice_id]

    def exists(self, slice_id: int) -> bool:
        """Return whether the index of a slice is open, or in the node's folder."""
        return slice_id in self._open or (self.db_dir / name_index(slice_id)).is_dir()

    def refresh(self) -> None:
        """Catch up with every open slice; close those that fail, for example after a deletion."""
        self._failed.clear()
        for slice_id, opened in list(self._open.items()):
            try:
                opened.catch_up()
            except SourceError:
                self._open.pop(slice_id).close()

    def close(self) -> None:
        """Close all slices."""
        while self._open:
            self._open.popitem()[1].close()


_FIRST_BLOCK = struct.Struct("<iqiIq")
"""``db.files.package.firstBlock``: workchain, shard, seqno, unixtime, lt."""


class SliceRecord(msgspec.Struct, frozen=True):
    """The record of one slice (``db.files.package.value``)."""

    id: int
    first_mc_seqno: int
    """The first masterchain block of the slice, at least 1: seqno 0 is the zero state."""
    deleted: bool


class GlobalIndex:
    """The slices of the archive by id; an id is the seqno of a masterchain block."""

    def __init__(self, store: FollowedStore) -> None:
        self.store = store
        self.slice_ids: list[int] = []
        self.record = cache(self._read_record)
        self._read()

    def refresh(self) -> None:
        """Catch up with slices that were added or deleted."""
        if self.store.catch_up():
            self._read()

    def find_slice(self, mc_seqno: int) -> SliceRecord | None:
        """Return the slice that covers a masterchain block and its shard blocks; None if none."""
        place = bisect.bisect_right(self.slice_ids, mc_seqno)
        return self.record(self.slice_ids[place - 1]) if place else None

    def _read(self) -> None:
        self.record.cache_clear()
        value = self.store.get(tl.pack_constructor(tl.INDEX_KEY))
        if value is None:
            raise SourceError(f"{self.store.name}: no list of packages: an empty node?")
        reader = tl.TlReader(value, f"{self.store.name}: db.files.index", tl.INDEX_VALUE)
        self.slice_ids = sorted(reader.read_vector(reader.read_int))
        reader.read_vector(reader.read_int)  # packages of key blocks
        reader.read_vector(reader.read_int)  # temporary packages
        reader.expect_end()

    def _read_record(self, slice_id: int) -> SliceRecord:
        """Return the record of a listed slice."""
        key = struct.pack("<Ii", tl.PACKAGE_KEY, slice_id) + tl.BOOL_FALSE + tl.BOOL_FALSE
        value = self.store.get(key)
        if value is None:
            raise SourceError(f"{self.store.name}: slice {slice_id} is listed without a record")
        reader = tl.TlReader(value, f"{self.store.name}: slice {slice_id}", tl.PACKAGE_VALUE)
        found_id, _key, _temp = reader.read_int(), reader.read_bool(), reader.read_bool()
        if found_id != slice_id:
            raise reader.fail(f"the record of slice {found_id}")

        first_blocks = reader.read_vector(
            lambda: _FIRST_BLOCK.unpack(reader.read_bytes(_FIRST_BLOCK.size))
        )
        stored = [seqno for workchain, _, seqno, _, _ in first_blocks if workchain == MASTERCHAIN]
        first = max(1, min(stored, default=slice_id))
        record = SliceRecord(slice_id, first, deleted=reader.read_bool())
        reader.expect_end()
        return record
