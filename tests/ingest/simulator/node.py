"""A node that writes its folder step by step, and to which what happens to nodes can happen."""

from __future__ import annotations

import hashlib
import shutil
import struct
from typing import TYPE_CHECKING

from tests.ingest.node.nodewriter import NodeWriter, encode_id

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.source import McBundle

LT_DESC, BLOCK_FILE, HANDLE = (bytes.fromhex(text) for text in ("91e7e3f1", "71e4eab0", "73d1577f"))
SMALL_BUFFER_BYTES = 1 << 14


class SimulatedNode:
    """Writes bundles in the order of the node's own writes, and remembers how to undo them.

    Slices begin at ``slices``; small buffers make RocksDB move its files often.
    """

    def __init__(
        self, db_dir: Path, *, slices: tuple[int, ...] = (0, 47, 140), form: str = "new"
    ) -> None:
        self.db_dir = db_dir
        self.writer = NodeWriter(
            db_dir, form=form, depth=1, slices=slices, buffer_bytes=SMALL_BUFFER_BYTES
        )
        self.written: list[McBundle] = []
        self._sizes: list[dict[Path, int]] = []
        self._descs: list[dict[int, dict[bytes, bytes]]] = []

    @property
    def last(self) -> int:
        """The newest masterchain block that is complete."""
        return len(self.written)

    def write(self, bundle: McBundle) -> None:
        """Write the next masterchain block and what it commits."""
        assert bundle.mc_seqno == self.last + 1
        self.writer.write_bundle(bundle)
        self.written.append(bundle)
        self._sizes.append({path: path.stat().st_size for path in self.packages()})
        self._descs.append(
            {
                slice_id: {key: store[key] for key in self._desc_keys(slice_id) if key in store}
                for slice_id, store in self.writer.open_slices.items()
            }
        )

    def _desc_keys(self, slice_id: int) -> list[bytes]:
        shards = self.writer.firsts[slice_id]
        return [LT_DESC + struct.pack("<iq", workchain, shard) for workchain, shard in shards]

    def packages(self) -> list[Path]:
        """Return the package files, sorted."""
        return sorted(self.db_dir.rglob("*.pack"))

    def roll_back(self, after: int) -> None:
        """Undo every masterchain block after ``after``, as the node's truncation does."""
        self.writer.write_shard_client(self.written[after - 1].blocks[0].id)
        for bundle in reversed(self.written[after:]):
            slice_id = max(one for one in self.writer.slices if one <= bundle.mc_seqno)
            store = self.writer.open_slices[slice_id]
            for block in bundle.blocks:
                name = encode_id(block.id)
                del store[HANDLE + name]
                del store[hashlib.sha256(BLOCK_FILE + name).hexdigest().upper().encode()]
        for slice_id, store in self.writer.open_slices.items():
            before = self._descs[after - 1].get(slice_id, {})
            for key in self._desc_keys(slice_id):
                if key in before:
                    store[key] = before[key]
                elif key in store:
                    del store[key]
        self._cut_packages(self._sizes[after - 1])
        del self.written[after:], self._sizes[after:], self._descs[after:]

    def _cut_packages(self, sizes: dict[Path, int]) -> None:
        """Make each package anew with what stays of it: another file under the same name."""
        for path in self.packages():
            copy = path.with_suffix(".copy")
            copy.write_bytes(path.read_bytes()[: sizes.get(path, 4)])
            copy.replace(path)

    def tear(self, count: int) -> bytes:
        """Cut bytes off the package that was written last; return them."""
        path = max(self.packages(), key=lambda one: one.stat().st_mtime_ns)
        content = path.read_bytes()
        path.write_bytes(content[:-count])
        self._torn = path
        return content[-count:]

    def mend(self, tail: bytes) -> None:
        """Make the torn package anew, whole."""
        copy = self._torn.with_suffix(".copy")
        copy.write_bytes(self._torn.read_bytes() + tail)
        copy.replace(self._torn)

    def compact(self) -> None:
        """Let RocksDB move what it has to other files."""
        for store in (self.writer.state, self.writer.index, *self.writer.open_slices.values()):
            store.compact_range(None, None)

    def restart(self) -> None:
        """Close and open every store, as a node that starts again does."""
        writer = self.writer
        writer.close()
        writer.state = writer._store("state")
        writer.index = writer._store("files/globalindex")
        for slice_id in writer.open_slices:
            name = f"archive/packages/arch{slice_id // 100000:04d}/archive.{slice_id:05d}.index"
            writer.open_slices[slice_id] = writer._store(name)

    def upgrade(self, form: str, at: int) -> None:
        """Go on in another form, from a slice that begins with masterchain block ``at``."""
        assert at == self.last + 1
        self.writer.slices = (*(one for one in self.writer.slices if one < at), at)
        self.writer.form = form

    def prune(self, slice_id: int) -> None:
        """Delete a slice, as a node does whose archive is to keep some days only."""
        self.writer.write_index(deleted=(slice_id,))
        self.writer.open_slices.pop(slice_id).close()
        folder = self.db_dir / "archive/packages/arch0000"
        shutil.rmtree(folder / f"archive.{slice_id:05d}.index")
        later = min((one for one in self.writer.slices if one > slice_id), default=1 << 30)
        for path in self.packages():
            if slice_id <= int(path.name.split(".")[1]) < later:
                path.unlink()

    def close(self) -> None:
        """Stop the node."""
        self.writer.close()
