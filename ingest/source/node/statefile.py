"""Persistent states: whole shard states that a node has written to files, one bag of cells each.

archive/states/state_<mc seqno>_<workchain>_<shard hex>_<KEY>

A file may be larger than memory, so it is mapped, and what is found out of its cells is kept in a
private folder, some 80 bytes a cell: where each begins, its hash and depth, which are mapped, too,
and its place by hash, in RocksDB.
"""

from __future__ import annotations

import mmap
import re
from contextlib import contextmanager
from hashlib import sha256
from struct import Struct
from typing import IO, TYPE_CHECKING, Any

from rocksdict import Options, Rdict, WriteBatch

from tonlake.ingest.decode.cell.envelope import read_envelope
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError, SourceError
from tonlake.ingest.source.node.scratch import Scratch
from tonlake.lake.file.regular import check_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from tonlake.ingest.source.node.shardstate import NamedState, NamedStates

STATES_FOLDER = "archive/states"
MOST_LEVELED = 1 << 16
"""Cells under one that is pruned, proves or updates: as many as an account may have (size limits,
ConfigParam 43)."""

_NAME = re.compile(r"state_(\d+)_(-?\d+)_([0-9A-Fa-f]{1,16})_[0-9A-F]{64}")
_START, _DIGEST = Struct("<Q"), Struct("<32sH")
_PLACE = Struct("<I")
_HASHES_BIT, _EXOTIC_BIT, _MAX_REFS = 0x10, 0x08, 4
_STORED_BYTES = 34
_BATCH = 10_000

Key = tuple[int, int, int]
"""Masterchain seqno, workchain and shard (unsigned) of a state."""


class StateFiles:
    """The persistent states of a node's folder; they are looked up by name."""

    def __init__(self, db_dir: Path) -> None:
        """List the files."""
        self._found: dict[Key, Path] = {}
        folder = db_dir / STATES_FOLDER
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            match = _NAME.fullmatch(path.name)
            if match:
                self._found[int(match[1]), int(match[2]), int(match[3], 16)] = path

    def list_kept(self, first: int, last: int) -> list[int]:
        """Return the masterchain blocks of a range of which there are files, the newest first."""
        return sorted({key[0] for key in self._found if first <= key[0] <= last}, reverse=True)

    def has(self, named: NamedStates) -> bool:
        """Whether the states of all shards after a masterchain block are there."""
        return all(_name(named.mc_seqno, state) in self._found for state in named.states)

    @contextmanager
    def open(self, named: NamedStates, state: NamedState) -> Iterator[StateFile]:
        """Open one state, and make sure that its root cell has the hash the block names.

        Raises:
            SourceError: the file is damaged, or another state's.
        """
        path = self._found[_name(named.mc_seqno, state)]
        file = StateFile(path, f"{STATES_FOLDER}/{path.name}")
        try:
            if file.root_hash != state.root_hash:
                raise SourceError(
                    f"{file.name}: its root cell has the hash {file.root_hash.hex()}, and the block"
                    f" names {state.root_hash.hex()}: the file is damaged, or another state"
                )
            yield file
        finally:
            file.close()


def _name(mc_seqno: int, state: NamedState) -> Key:
    return mc_seqno, state.workchain, state.shard & (1 << 64) - 1


class StateFile:
    """The cells of one bag by hash; every hash is computed when it is opened."""

    def __init__(self, path: Path, name: str) -> None:
        """Read all cells once.

        Raises:
            SourceError: the file is no sound bag of cells.
        """
        self.name = name
        self._scratch = Scratch()
        folder = self._scratch.new_folder()
        self._places = Rdict(str(folder / "places"), Options(raw_mode=True))
        self._maps: list[mmap.mmap] = []
        try:
            with path.open("rb") as stream:
                check_regular(path, path.stat().st_mode)
                self._data = self._map(stream)
            self._envelope = read_envelope(self._data, check_crc=False)  # type: ignore[arg-type]
            count = self._envelope.cell_count
            self._starts = self._make_map(folder / "starts", count * _START.size)
            self._digests = self._make_map(folder / "digests", count * _DIGEST.size)
            self._find_starts()
            self._compute_digests()
        except (OSError, ValueError, BocError) as error:
            self.close()
            raise SourceError(f"{name}: {error}") from error
        except SourceError:
            self.close()
            raise
        self.root_hash = self._hash(self._envelope.roots[0])

    def fetch(self, hashes: Collection[bytes]) -> dict[bytes, tuple[bytes, list[bytes]]]:
        """Return cells as ``state_cells`` has them: descriptors with data, and child hashes."""
        keys = sorted(hashes)
        found = {}
        places: Any = self._places.get(list(keys))
        for key, place in zip(keys, places, strict=True):
            if place is None:
                raise SourceError(f"{self.name}: it has no cell {key.hex()}")
            body, refs = self._read(_PLACE.unpack(place)[0])
            found[key] = body, [self._hash(ref) for ref in refs]
        return found

    def close(self) -> None:
        """Close the file, and remove what was kept of it."""
        for each in self._maps:
            each.close()
        self._places.close()
        self._scratch.close()

    def _map(self, stream: IO[bytes]) -> mmap.mmap:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return mapped

    def _make_map(self, path: Path, size: int) -> mmap.mmap:
        with path.open("w+b") as stream:
            stream.truncate(size)
            mapped = mmap.mmap(stream.fileno(), size)
        self._maps.append(mapped)
        return mapped

    def _find_starts(self) -> None:
        data, at, end = self._data, self._envelope.first, self._envelope.end
        ref_bytes = self._envelope.ref_bytes
        for cell in range(self._envelope.cell_count):
            if at + 2 > end:
                raise BocError("cells end too early", at)
            _START.pack_into(self._starts, cell * _START.size, at)
            d1, d2 = data[at], data[at + 1]
            if d1 & 7 > _MAX_REFS:
                raise BocError(f"cell with {d1 & 7} references", at)
            at += 2 + _stored_bytes(d1) + (d2 + 1 >> 1) + (d1 & 7) * ref_bytes
        if at != end:
            raise BocError("cells do not end where the bag does", at)

    def _read(self, cell: int) -> tuple[bytes, list[int]]:
        """Return descriptors with data of a cell, and its children, which come behind it."""
        (at,) = _START.unpack_from(self._starts, cell * _START.size)
        data, width = self._data, self._envelope.ref_bytes
        d1, d2 = data[at], data[at + 1]
        begin = at + 2 + _stored_bytes(d1)
        end = begin + (d2 + 1 >> 1)
        refs = [
            int.from_bytes(data[ref : ref + width], "big")
            for ref in range(end, end + (d1 & 7) * width, width)
        ]
        if refs and not cell < min(refs) <= max(refs) < self._envelope.cell_count:
            raise BocError(f"cell {cell} has references that do not lead forward", at)
        return bytes((d1 & ~_HASHES_BIT, d2)) + data[begin:end], refs

    def _compute_digests(self) -> None:
        """Compute the hash of each cell, those of its children first."""
        batch = WriteBatch(raw_mode=True)
        for cell in range(self._envelope.cell_count - 1, -1, -1):
            body, refs = self._read(cell)
            if body[0] >> 5 or (body[0] & _EXOTIC_BIT and refs):
                digest, depth = self._digest_leveled(cell)
            else:
                below = [_DIGEST.unpack_from(self._digests, ref * _DIGEST.size) for ref in refs]
                depth = 1 + max(each[1] for each in below) if below else 0
                depths = b"".join(each[1].to_bytes(2, "big") for each in below)
                digest = sha256(body + depths + b"".join(each[0] for each in below)).digest()
            _DIGEST.pack_into(self._digests, cell * _DIGEST.size, digest, depth)
            batch.put(digest, _PLACE.pack(cell))
            if batch.len() >= _BATCH:
                self._places.write(batch)
                batch = WriteBatch(raw_mode=True)
        self._places.write(batch)

    def _digest_leveled(self, cell: int) -> tuple[bytes, int]:
        """Return hash and depth of a cell that may have several, or stands over such."""
        found: dict[int, tuple[bytes, list[int]]] = {}
        todo = [cell]
        while todo:
            each = todo.pop()
            if each not in found:
                found[each] = self._read(each)
                todo += found[each][1]
            if len(found) > MOST_LEVELED:
                raise BocError(f"more than {MOST_LEVELED} cells under exotic cell {cell}")
        tree = CellTree()
        places: dict[int, int] = {}
        for each in sorted(found, reverse=True):
            body, refs = found[each]
            places[each] = tree.append(body, tuple(places[ref] for ref in refs))
        return tree.hash(places[cell]), tree.depth(places[cell])

    def _hash(self, cell: int) -> bytes:
        start = cell * _DIGEST.size
        return self._digests[start : start + 32]


def _stored_bytes(d1: int) -> int:
    """Return how many bytes the hashes and depths take that stand in a cell."""
    return ((d1 >> 5).bit_count() + 1) * _STORED_BYTES if d1 & _HASHES_BIT else 0
