"""Reads a bag of cells that may be larger than memory: the file is mapped, cells have numbers.

When a bag is opened, the offset, hash and depth of each of its cells are computed, children first,
and stored in mapped files of a private folder, 42 bytes a cell. For a cell above pruned branches
these are its hash and depth at level 0: those in the tree from which the branches were pruned.
"""

from __future__ import annotations

import mmap
from functools import reduce
from hashlib import sha256
from operator import or_
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.envelope import NATIVE, read_envelope
from tonlake.ingest.decode.cell.exotic import exotic_mask
from tonlake.ingest.decode.cell.packed import naming
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError, SourceError
from tonlake.ingest.source.node.scratch import Scratch
from tonlake.lake.file.regular import check_regular

if TYPE_CHECKING:
    from pathlib import Path

MAX_LEVELED = 1 << 16
"""Most cells under a Merkle cell: as many as an account may have (ConfigParam 43)."""

_HANDLE, _START, _DIGEST = Struct(">Q"), Struct("=Q"), Struct(">32sH")
_HASHES_BIT, _EXOTIC_BIT, _MAX_REFS = 0x10, 0x08, 4
_STORED_BYTES = 34
_HASH_AT, _HASH_BYTES, _DEPTH_BYTES = 4, 32, 2
_core = NATIVE if hasattr(NATIVE, "read_cells") else None


class BagPlace(NamedTuple):
    """An indexed bag: its file, the file of cell offsets, and the bytes of a reference."""

    path: Path
    name: str
    starts: Path
    ref_bytes: int


class BagCells:
    """The cells of a bag, packed (tonlake.ingest.decode.cell.packed); a handle is a cell number."""

    width = _HANDLE.size

    def __init__(self, place: BagPlace) -> None:
        """Map the files."""
        self.place, self.name = place, place.name
        self._data, self._starts = (_map_file(path) for path in (place.path, place.starts))
        self.count = len(self._starts) // _START.size

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return the packed cells of ``handles``.

        Raises:
            SourceError: a cell is damaged.
        """
        ref_bytes = self.place.ref_bytes
        if _core is not None:
            found: list[bytes] = _core.read_cells(self._data, self._starts, ref_bytes, handles)
            if None not in found:
                return found
        with naming(self.name):
            return [self._pack(handle) for handle in handles]

    def read(self, cell: int) -> tuple[bytes, list[int]]:
        """Return descriptors and data of a cell, and the numbers of its children.

        Raises:
            BocError: a reference does not point to a later cell.
        """
        (at,) = _START.unpack_from(self._starts, cell * _START.size)
        data, width = self._data, self.place.ref_bytes
        d1, d2 = data[at], data[at + 1]
        begin = at + 2 + _stored_bytes(d1)
        end = begin + (d2 + 1 >> 1)
        refs = [
            int.from_bytes(data[ref : ref + width], "big")
            for ref in range(end, end + (d1 & 7) * width, width)
        ]
        if refs and not cell < min(refs) <= max(refs) < self.count:
            raise BocError(f"cell {cell} has references that do not lead forward", at)
        return bytes((d1 & ~_HASHES_BIT, d2)) + data[begin:end], refs

    def digest(self, digests: mmap.mmap, before: int) -> int:
        """Compute digests in C, downwards from cell ``before - 1``; return how many are left."""
        if _core is None:
            return before
        behind: int = _core.digest_cells(
            self._data, self._starts, self.place.ref_bytes, digests, before
        )
        return behind

    def close(self) -> None:
        """Close the files."""
        self._data.close()
        self._starts.close()

    def _pack(self, handle: bytes) -> bytes:
        body, refs = self.read(*_HANDLE.unpack(handle))
        return body + b"".join(map(_HANDLE.pack, refs))


class StateBag:
    """A bag with the hashes of all its cells; closing it removes its temporary files."""

    def __init__(self, path: Path, name: str) -> None:
        """Read and hash all cells.

        Raises:
            SourceError: the file is not a valid bag of cells.
        """
        self.name = name
        self._scratch = Scratch()
        self._open: list[mmap.mmap | BagCells] = []
        try:
            self._read(path)
        except (OSError, ValueError, BocError) as error:
            self.close()
            raise SourceError(f"{name}: {error}") from error

    def _read(self, path: Path) -> None:
        folder = self._scratch.new_folder()
        data = _map_file(path)
        self._open.append(data)
        envelope = read_envelope(data, check_crc=False)  # type: ignore[arg-type]
        count = envelope.cell_count
        starts = self._make_map(folder / "starts", count * _START.size)
        found, end = _find_starts(data, envelope.first, envelope.end, envelope.ref_bytes, starts)
        if found != count or end != envelope.end:
            raise BocError(f"{found} of {count} cells end where they should", end)
        self._digests = self._make_map(folder / "digests", count * _DIGEST.size)
        self.cells = BagCells(BagPlace(path, self.name, folder / "starts", envelope.ref_bytes))
        self._open.append(self.cells)
        self.root = _HANDLE.pack(envelope.roots[0])
        before = self.cells.digest(self._digests, count)
        while before:
            digest = self._digest(before - 1)
            _DIGEST.pack_into(self._digests, (before - 1) * _DIGEST.size, *digest)
            before = self.cells.digest(self._digests, before - 1)

    def get_digest(self, handle: bytes) -> tuple[bytes, int]:
        """Return the hash and depth of a cell."""
        (cell,) = _HANDLE.unpack(handle)
        digest, depth = _DIGEST.unpack_from(self._digests, cell * _DIGEST.size)
        return digest, depth

    def close(self) -> None:
        """Close the file, and remove the temporary files."""
        for each in self._open:
            each.close()
        self._scratch.close()

    def _make_map(self, path: Path, size: int) -> mmap.mmap:
        with path.open("w+b") as stream:
            stream.truncate(size)
            mapped = mmap.mmap(stream.fileno(), size)
        self._open.append(mapped)
        return mapped

    def _digest(self, cell: int) -> tuple[bytes, int]:
        """Compute hash and depth of a cell whose children already have theirs."""
        body, refs = self.cells.read(cell)
        if body[0] & _EXOTIC_BIT:
            if refs:
                return self._digest_merkle(cell)
            mask = exotic_mask(body, ())
            if mask:
                depth_at = _HASH_AT + mask.bit_count() * _HASH_BYTES
                depth = int.from_bytes(body[depth_at : depth_at + _DEPTH_BYTES], "big")
                return body[_HASH_AT : _HASH_AT + _HASH_BYTES], depth
        mask = reduce(or_, (self.cells.read(ref)[0][0] >> 5 for ref in refs), 0)
        if not body[0] & _EXOTIC_BIT and body[0] >> 5 != mask:
            raise BocError(f"cell {cell} claims level mask {body[0] >> 5}, but has {mask}")
        below = [self.get_digest(_HANDLE.pack(ref)) for ref in refs]
        depths = b"".join(each[1].to_bytes(_DEPTH_BYTES, "big") for each in below)
        hashes = b"".join(each[0] for each in below)
        digest = sha256(bytes((body[0] & 0x1F,)) + body[1:] + depths + hashes).digest()
        return digest, 1 + max((each[1] for each in below), default=-1)

    def _digest_merkle(self, cell: int) -> tuple[bytes, int]:
        """Compute hash and depth at level 0 of a Merkle cell; its children have a higher level."""
        found: dict[int, tuple[bytes, list[int]]] = {}
        todo = [cell]
        while todo:
            each = todo.pop()
            if each not in found:
                found[each] = self.cells.read(each)
                todo += found[each][1]
            if len(found) > MAX_LEVELED:
                raise BocError(f"more than {MAX_LEVELED} cells under Merkle cell {cell}")
        tree = CellTree()
        places: dict[int, int] = {}
        for each in sorted(found, reverse=True):
            body, refs = found[each]
            places[each] = tree.append(body, tuple(places[ref] for ref in refs))
        return tree.hash(places[cell], 0), tree.depth(places[cell], 0)


def _map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        check_regular(path, path.stat().st_mode)
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _find_starts(
    data: mmap.mmap, first: int, end: int, ref_bytes: int, starts: mmap.mmap
) -> tuple[int, int]:
    """Write the offsets of cells to ``starts``; return their number, and the end of the last."""
    if _core is not None:
        found: tuple[int, int] = _core.find_starts(data, first, end, ref_bytes, starts)
        return found
    at = first
    count = len(starts) // _START.size
    for cell in range(count):
        if at + 2 > end or data[at] & 7 > _MAX_REFS:
            return cell, at
        d1, d2 = data[at], data[at + 1]
        behind = at + 2 + _stored_bytes(d1) + (d2 + 1 >> 1) + (d1 & 7) * ref_bytes
        if behind > end:
            return cell, at
        _START.pack_into(starts, cell * _START.size, at)
        at = behind
    return count, at


def _stored_bytes(d1: int) -> int:
    """Return the size of the hashes and depths stored in a cell, in bytes."""
    return ((d1 >> 5).bit_count() + 1) * _STORED_BYTES if d1 & _HASHES_BIT else 0
