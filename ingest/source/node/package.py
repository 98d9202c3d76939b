"""Reads archive packages (``.pack``): a plain sequence of entries.

    file  := u32 0xAE8FDD01, entry*
    entry := u16 0x1E8B, u16 name_len, u32 data_len, name, data        (little-endian)

There is no checksum and no end mark. An entry is valid if it lies within the ``status`` of the
index, the number of valid bytes, and for a block if its SHA-256 is the one in its name. Offsets
in indexes do not count the four bytes at the start of the file.
"""

import hashlib
import os
import re
import struct
from io import FileIO
from pathlib import Path

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import EntryFlaw
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.regular import open_regular

FILE_MAGIC = 0xAE8FDD01
FILE_HEADER_BYTES = 4
ENTRY_MAGIC = 0x1E8B
ENTRY_HEADER = struct.Struct("<HHI")
DATA_BYTES_LIMIT = (1 << 31) - 1
_SEARCH_BYTES = 1 << 20
NAME_BYTES = 256
"""Bytes read after the header of an entry, more than the name of a genuine one has."""

BLOCK_KIND, PROOF_KIND, PROOF_LINK_KIND = "block", "proof", "prooflink"
OTHER_KINDS = frozenset(
    ("proof", "prooflink", "signatures", "candidate", "candidateref", "info", "empty")
)
_NAME = re.compile(r"([a-z]+)_\((-?\d+),([0-9a-f]{16}),(\d+)\):([0-9A-F]{64}):([0-9A-F]{64})")
_LATER_ENTRY = re.compile(rb"\x8b\x1e..[\x00-\xff]{4}(?:block|proof|prooflink)_\(-?\d", re.DOTALL)


class OpenFiles(dict[Path, "FileIO"]):
    """At most ``FILES_KEPT`` open packages; all are closed when one more is opened."""

    def open(self, path: Path) -> FileIO:
        """Return an open package, opening it if necessary."""
        file = self.get(path)
        if file is None:
            if len(self) >= FILES_KEPT:
                self.close()
            file = self[path] = open_regular(path)
        return file

    def close(self) -> None:
        """Close all packages."""
        while self:
            self.popitem()[1].close()


FILES_KEPT = 16


class EntryPlace(msgspec.Struct, frozen=True):
    """The position of an entry according to an index: file, offset, and end of the valid part.

    ``name`` is the file name for errors, relative to the source's folder. ``bound`` is None if no
    index limits the valid part. ``files`` keeps the file open; without it, each read opens it.
    """

    path: Path
    name: str
    offset: int
    bound: int | None
    files: OpenFiles | None = None


def format_entry_name(block_id: BlockId, kind: str = BLOCK_KIND) -> str:
    """Return the name of a block's entry, or of another ``kind`` of entry of the block."""
    hashes = (block_id.root_hash + block_id.file_hash).hex().upper()
    return f"{kind}_{block_id}:{hashes[:64]}:{hashes[64:]}"


def parse_entry_name(name: bytes) -> tuple[str, BlockId] | None:
    """Return kind and block id of an entry's name; None if the name has another form."""
    match = _NAME.fullmatch(name.decode("ascii", "replace"))
    if match is None:
        return None
    kind, workchain, shard, seqno, root_hash, file_hash = match.groups()
    signed = int.from_bytes(bytes.fromhex(shard), "big", signed=True)
    return kind, BlockId(
        int(workchain), signed, int(seqno), bytes.fromhex(root_hash), bytes.fromhex(file_hash)
    )


def read_block_entry(place: EntryPlace, block_id: BlockId, *, check_file: bool = True) -> bytes:
    """Return the bytes of the block at ``place``."""
    data = _read_named_entry(place, format_entry_name(block_id))
    if check_file:
        check_file_hash(data, block_id, file=place.name, offset=FILE_HEADER_BYTES + place.offset)
    return data


def read_proof_entry(place: EntryPlace, block_id: BlockId) -> bytes:
    """Return the bytes of the block proof at ``place``."""
    kind = PROOF_KIND if block_id.workchain == MASTERCHAIN else PROOF_LINK_KIND
    return _read_named_entry(place, format_entry_name(block_id, kind))


def read_candidate_entry(place: EntryPlace, block_id: BlockId, kind: str) -> bytes:
    """Return the bytes of a ``candidate`` of a block, or of the ``candidateref`` to it."""
    return _read_named_entry(place, format_entry_name(block_id, kind), is_prefix=True)


def _read_named_entry(place: EntryPlace, expected: str, *, is_prefix: bool = False) -> bytes:
    position = FILE_HEADER_BYTES + place.offset
    if place.bound is not None and place.offset + ENTRY_HEADER.size > place.bound:
        reason = f"the index puts it there, but only the first {place.bound} bytes are valid"
        raise _flaw(place, position, reason)
    try:
        if place.files is not None:
            name, data = _read_entry(place.files.open(place.path).fileno(), position, place)
        else:
            with open_regular(place.path) as file:
                name, data = _read_entry(file.fileno(), position, place)
    except OSError as error:
        raise _flaw(place, position, explain_unreadable(error)) from error
    if (name[: len(expected)] if is_prefix else name) != expected.encode():
        reason = f"found entry {name!r} instead of {expected.encode()!r}"
        raise _flaw(place, position, reason)
    return data


def explain_unreadable(error: OSError) -> str:
    """Return why a file of the source cannot be read, without its full path."""
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"
    return f"the file cannot be read: {error.strerror}"


def check_file_hash(data: bytes, block_id: BlockId, *, file: str, offset: int) -> None:
    """Raise EntryFlaw unless the SHA-256 of ``data`` is the file hash of the block."""
    if hashlib.sha256(data).digest() != block_id.file_hash:
        reason = f"the SHA-256 of the {len(data)} bytes is not the block's file hash"
        raise EntryFlaw(reason, file=file, offset=offset)


def _read_entry(descriptor: int, position: int, place: EntryPlace) -> tuple[bytes, bytes]:
    head = os.pread(descriptor, ENTRY_HEADER.size + NAME_BYTES, position)
    name_bytes, data_bytes = _read_entry_header(head, position, place)
    start = position + ENTRY_HEADER.size
    end = start + name_bytes + data_bytes
    if place.bound is not None and end > FILE_HEADER_BYTES + place.bound:
        reason = f"the entry ends at {end}, but the index declares only {place.bound} bytes valid"
        raise _flaw(place, position, reason)
    # Two reads: slicing the name off one buffer would copy the data.
    name = head[ENTRY_HEADER.size :][:name_bytes]
    if name_bytes > NAME_BYTES:
        name = os.pread(descriptor, name_bytes, start)
    data = os.pread(descriptor, data_bytes, start + name_bytes)
    if len(name) + len(data) < name_bytes + data_bytes:
        raise _flaw(place, position, f"the file ends inside the entry, before {end}", cut=True)
    return name, data


def _read_entry_header(head: bytes, position: int, place: EntryPlace) -> tuple[int, int]:
    if len(head) < ENTRY_HEADER.size:
        raise _flaw(place, position, "the file ends before or inside the entry", cut=True)
    magic, name_bytes, data_bytes = ENTRY_HEADER.unpack_from(head)
    if magic != ENTRY_MAGIC:
        raise _flaw(place, position, f"no entry begins here: {magic:04x}, not {ENTRY_MAGIC:04x}")
    if data_bytes > DATA_BYTES_LIMIT:
        raise _flaw(place, position, f"an entry of {data_bytes} bytes")
    return name_bytes, data_bytes


def _flaw(place: EntryPlace, position: int, reason: str, *, cut: bool = False) -> EntryFlaw:
    return EntryFlaw(reason, file=place.name, offset=position, cut=cut)


class PackageScan:
    """Finds the blocks of a package by reading it from front to end; ``advance`` resumes.

    ``blocks`` maps the id of each block to its place, preferring copies with valid bytes.
    ``flaws`` are the errors passed over so far, such as what a crash of the node left in front of
    later entries. ``tail`` is what stops the scan: an entry that is incomplete, as the last one is
    while a node writes, or bytes that are not an entry.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._restart(0)

    def _restart(self, inode: int) -> None:
        self.inode = inode
        self.end = 0
        self._doubted: int | None = None
        """Position of the entry before the end, if no hash confirms its length."""
        self.blocks: dict[BlockId, EntryPlace] = {}
        self.flaws: list[EntryFlaw] = []
        self.tail: EntryFlaw | None = None

    def advance(self) -> bool:
        """Read new entries; return whether anything changed."""
        try:
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                size = max(0, status.st_size - FILE_HEADER_BYTES)
                if status.st_ino != self.inode or size < self.end:
                    self._restart(status.st_ino)
                before = (self.end, self.tail and self.tail.args)
                self._read_on(file.fileno(), size)
        except OSError as error:
            self._restart(0)
            self.tail = EntryFlaw(explain_unreadable(error), file=self.name, offset=0)
            return True
        return before != (self.end, self.tail and self.tail.args)

    def _read_on(self, descriptor: int, limit: int) -> None:
        self.tail = self._check_magic(descriptor) if self.end == 0 else None
        while self.tail is None and self.end < limit:
            place = EntryPlace(self.path, self.name, self.end, None)
            position = FILE_HEADER_BYTES + self.end
            try:
                name, data = _read_entry(descriptor, position, place)
                is_block = self._keep(place, position, name, data)
            except EntryFlaw as flaw:
                self._pass_over(descriptor, limit, flaw)
            else:
                self.end += ENTRY_HEADER.size + len(name) + len(data)
                self._doubted = None if is_block else position

    def _check_magic(self, descriptor: int) -> EntryFlaw | None:
        head = os.pread(descriptor, FILE_HEADER_BYTES, 0)
        magic = FILE_MAGIC.to_bytes(FILE_HEADER_BYTES, "little")
        if head == magic:
            return None
        cut = magic.startswith(head)
        reason = "the file ends inside its header" if cut else "the file is not a package"
        return EntryFlaw(reason, file=self.name, offset=0, cut=cut)

    def _pass_over(self, descriptor: int, limit: int, flaw: EntryFlaw) -> None:
        """Go on at the next entry, perhaps one that the entry before swallowed, or end the scan."""
        later = None
        if self._doubted is not None:
            later = _find_entry(descriptor, self._doubted, limit)
        if later is None or later == flaw.offset:
            later = _find_entry(descriptor, flaw.offset, limit)
        if later is None:
            self.tail = flaw
            return
        reason = f"a wrong length: an entry begins inside, at {later}" if flaw.cut else flaw.reason
        self.flaws.append(EntryFlaw(reason, file=flaw.file, offset=flaw.offset))
        self.end, self._doubted = later - FILE_HEADER_BYTES, None

    def _keep(self, place: EntryPlace, position: int, name: bytes, data: bytes) -> bool:
        """Keep the place of a block; return whether it is one. Raise EntryFlaw if it is damaged."""
        parsed = parse_entry_name(name)
        kind = parsed[0] if parsed else name.split(b"_")[0].decode("ascii", "replace")
        if parsed is None or kind != BLOCK_KIND:
            if kind not in OTHER_KINDS:
                reason = f"an entry with the unknown name {name!r}"
                raise EntryFlaw(reason, file=self.name, offset=position)
            return False
        block_id = parsed[1]
        self.blocks.setdefault(block_id, place)
        check_file_hash(data, block_id, file=self.name, offset=position)
        self.blocks[block_id] = place
        return True


def _find_entry(descriptor: int, position: int, limit: int) -> int | None:
    """Return the position of the first entry behind a header, None if there is none."""
    start, end = position + ENTRY_HEADER.size, FILE_HEADER_BYTES + limit
    while start < end:
        # Not beyond what was there when the scan began: the node may have written on.
        part = os.pread(descriptor, min(_SEARCH_BYTES, end - start), start)
        if found := _LATER_ENTRY.search(part):
            return start + found.start()
        start += _SEARCH_BYTES - NAME_BYTES
    return None
