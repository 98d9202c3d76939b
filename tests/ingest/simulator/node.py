"""Simulates a node that writes its folder step by step, with the faults of real nodes."""

import hashlib
import shutil
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.ingest.source.node import nodewriter
from tonlake.ingest.blocks import McBundle, RawBlock

LT_DESC, BLOCK_FILE, HANDLE = (bytes.fromhex(text) for text in ("91e7e3f1", "71e4eab0", "73d1577f"))
BLOCK_SIGNED = bytes.fromhex("c2c872c8")
SMALL_BUFFER_BYTES = 1 << 14
PACKAGE_HEAD_BYTES = 4


class SimulatedNode:
    """Writes bundles in the order of the node's own writes, and remembers how to undo them."""

    def __init__(
        self,
        db_dir: Path,
        *,
        slices: tuple[int, ...] = (0, 47, 140),
        form: str = "new",
        written: Sequence[McBundle | None] = (),
    ) -> None:
        """Begin a folder, or continue one with ``written`` as its newest blocks, old ones None."""
        self.db_dir = db_dir
        self.writer = nodewriter.NodeWriter(
            db_dir, form=form, depth=1, slices=slices, buffer_bytes=SMALL_BUFFER_BYTES
        )
        self.written: list[Any] = list(written)

    @property
    def last(self) -> int:
        """The newest masterchain block that is complete."""
        return len(self.written)

    def write(self, bundle: McBundle) -> None:
        """Write the next masterchain block and the blocks it commits."""
        assert bundle.mc_seqno == self.last + 1
        self.writer.write_bundle(bundle)
        self.written.append(bundle)

    def sign(self, block: RawBlock) -> bytes:
        """Store a signed shard block in the temporary package; return the event about it."""
        folder, name = self.db_dir / "files/packages", nodewriter.encode_id(block.id)
        folder.mkdir(exist_ok=True)
        file_key = hashlib.sha256(BLOCK_FILE + name).hexdigest().upper().encode()
        with (
            (folder / "temp.archive.1795237200.pack").open("ab") as file,
            closing(nodewriter.open_store(folder / "temp.archive.1795237200.index")) as store,
        ):
            file.write(b"" if file.tell() else bytes.fromhex("01dd8fae"))
            store[file_key] = str(file.tell() - PACKAGE_HEAD_BYTES).encode()
            file.write(nodewriter.encode_entry(nodewriter.entry_name(block.id), block.data))
            store[b"status"] = str(file.tell() - PACKAGE_HEAD_BYTES).encode()
        return BLOCK_SIGNED + name

    def packages(self) -> list[Path]:
        return sorted(self.db_dir.glob("archive/packages/*/*.pack"))

    def roll_back(self, after: int) -> None:
        """Undo every masterchain block after ``after``, as the node's truncation does."""
        self.writer.write_shard_client(self.written[after - 1].blocks[0].id)
        gone = self.written[after:]
        del self.written[after:]
        self._undo(gone)

    def recover(self, under_way: McBundle) -> None:
        """Recover as a killed node does: keep a complete bundle, cut off other data."""
        for slice_id, store in self.writer.open_slices.items():
            for number, key in enumerate(self.writer.files[slice_id]):
                path = self.writer.place_file(key)
                size = (
                    int(nodewriter.read_bytes(store, f"status.{number}".encode()))
                    + PACKAGE_HEAD_BYTES
                )
                if path.stat().st_size > size:
                    self._cut(path, size)
        if nodewriter.read_bytes(self.writer.state, nodewriter.SHARD_CLIENT)[
            4:
        ] == nodewriter.encode_id(under_way.blocks[0].id):
            self.written.append(under_way)
        else:
            self._undo([under_way])

    def _slice_of(self, mc_seqno: int) -> int:
        return max(one for one in self.writer.slices if one <= mc_seqno)

    def _undo(self, bundles: list[McBundle]) -> None:
        """Remove bundles, complete or not, from indexes and packages."""
        sizes: dict[tuple[int, int, Path], int] = {}
        shards: set[tuple[int, int, int]] = set()
        for bundle in bundles:
            slice_id = self._slice_of(bundle.mc_seqno)
            if (store := self.writer.open_slices.get(slice_id)) is None:
                continue
            for block in bundle.blocks:
                name = nodewriter.encode_id(block.id)
                file_key = hashlib.sha256(BLOCK_FILE + name).hexdigest().upper().encode()
                if (found := store.get(file_key)) is None:
                    continue
                number, path, _ = self.writer.choose_file(slice_id, bundle.mc_seqno, block.id)
                begin = int(found) + PACKAGE_HEAD_BYTES - len(nodewriter.encode_proof(block.id))
                place = slice_id, number, path
                sizes[place] = min(begin, sizes.get(place, begin))
                shards.add((slice_id, block.id.workchain, block.id.shard))
                del store[HANDLE + name]
                del store[file_key]
        for one in shards:
            self._put_desc(*one)
        for (slice_id, number, path), size in sizes.items():
            status = str(size - PACKAGE_HEAD_BYTES).encode()
            self.writer.open_slices[slice_id][f"status.{number}".encode()] = status
            self._cut(path, size)

    def _put_desc(self, slice_id: int, workchain: int, shard: int) -> None:
        """Update the record of a shard's newest block in a slice after a removal."""
        store = self.writer.open_slices[slice_id]
        key = LT_DESC + struct.pack("<iq", workchain, shard)
        for bundle in reversed(self.written):
            if bundle is None or bundle.mc_seqno < slice_id:
                break
            for block in reversed(bundle.blocks):
                if (block.id.workchain, block.id.shard) == (workchain, shard):
                    store[key] = nodewriter.encode_desc(
                        block.id.seqno, self.writer.read_header(block)
                    )
                    return
        del store[key]

    def _cut(self, path: Path, size: int) -> None:
        """Rewrite a package with the remaining entries: another file under the same name."""
        copy = path.with_suffix(".copy")
        copy.write_bytes(path.read_bytes()[:size])
        copy.replace(path)

    def tear(self, count: int) -> bytes:
        """Cut bytes off the package written last; return them."""
        path = max(self.packages(), key=lambda one: one.stat().st_mtime_ns)
        content = path.read_bytes()
        path.write_bytes(content[:-count])
        self._torn = path
        return content[-count:]

    def mend(self, tail: bytes) -> None:
        """Rewrite the torn package in full."""
        copy = self._torn.with_suffix(".copy")
        copy.write_bytes(self._torn.read_bytes() + tail)
        copy.replace(self._torn)

    def compact(self) -> None:
        """Let RocksDB compact its files."""
        for store in (self.writer.state, self.writer.index, *self.writer.open_slices.values()):
            store.compact_range(None, None)

    def restart(self) -> None:
        """Close and reopen every store, as a restarted node does."""
        writer = self.writer
        writer.close()
        writer.state = writer._store("state")
        writer.index = writer._store("files/globalindex")
        for slice_id in writer.open_slices:
            writer.open_slices[slice_id] = writer._store(nodewriter.slice_name(slice_id))

    def upgrade(self, form: str, at: int) -> None:
        """Switch to another form, from a slice that begins with masterchain block ``at``."""
        assert at == self.last + 1
        self.writer.slices = (*(one for one in self.writer.slices if one < at), at)
        self.writer.form = form

    def prune(self, slice_id: int) -> None:
        """Delete a slice, as a node does that keeps its archive for some days only."""
        self.writer.write_index(deleted=(slice_id,))
        self.writer.open_slices.pop(slice_id).close()
        folder = self.db_dir / "archive/packages/arch0000"
        shutil.rmtree(folder / f"archive.{slice_id:05d}.index")
        later = min((one for one in self.writer.slices if one > slice_id), default=1 << 30)
        for path in self.packages():
            if slice_id <= int(path.name.split(".")[1]) < later:
                path.unlink()

    def close(self) -> None:
        self.writer.close()
