"""Writes a node's folder, in every form nodes have used, from genuine blocks.

The encoders here are independent of the reader's: they follow the scheme, not its code.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc


class Header(Protocol):
    """The contents of a block's handle."""

    @property
    def previous(self) -> tuple[BlockId, ...]: ...
    @property
    def end_lt(self) -> int: ...
    @property
    def gen_utime(self) -> int: ...


Leave = Callable[[McBundle], tuple[BlockId, ...]]
TRUE, FALSE = bytes.fromhex("b5757299"), bytes.fromhex("379779bc")
SHARD_CLIENT = bytes.fromhex("268b010df1816f1f95c85343e3b35dfa0dc1176486a549e08c177ae151277fae")
MASTER = -(1 << 63)
INDEX_KEY, SLICE_KEY = bytes.fromhex("0205c47d"), bytes.fromhex("3e0304a5")


def encode_id(one: BlockId) -> bytes:
    head = struct.pack("<iQI", one.workchain, one.shard & (1 << 64) - 1, one.seqno)
    return head + one.root_hash + one.file_hash


def encode_entry(name: str, data: bytes) -> bytes:
    return struct.pack("<HHI", 0x1E8B, len(name), len(data)) + name.encode() + data


def entry_name(one: BlockId, kind: str = "block") -> str:
    shard = f"{one.shard & (1 << 64) - 1:016x}"
    hashes = f"{one.root_hash.hex()}:{one.file_hash.hex()}".upper()
    return f"{kind}_({one.workchain},{shard},{one.seqno}):{hashes}"


def encode_proof(one: BlockId) -> bytes:
    """Return the previous entry of a block."""
    kind = "proof" if one.workchain == -1 else "prooflink"
    return encode_entry(entry_name(one, kind), b"a proof")


def encode_handle(
    one: BlockId, prev: tuple[BlockId, ...], mc_ref: int | None, *, lt: int, unixtime: int
) -> bytes:
    flags = 1 << 9 | 1 << 13 | 1 << 14 | 1 << 21 | 1 << 22 | 1 << 27
    flags |= 1 << 1 | (1 << 2 if len(prev) > 1 else 0)
    flags |= 1 if one.workchain == -1 else 1 << 23
    value = bytes.fromhex("27e7c64a") + encode_id(one) + struct.pack("<I", flags)
    value += b"".join(map(encode_id, prev)) + struct.pack("<qI", lt, unixtime)
    return value + (b"" if one.workchain == -1 else struct.pack("<I", mc_ref or 0))


def encode_desc(seqno: int, header: Header) -> bytes:
    """Return the record of a shard's newest block in a slice."""
    desc = struct.pack("<iiiqi", 1, 2, seqno, header.end_lt, header.gen_utime)
    return bytes.fromhex("b451af71") + desc


def slice_name(slice_id: int) -> str:
    """Return the path of a slice's index."""
    return f"archive/packages/arch{slice_id // 100000:04d}/archive.{slice_id:05d}.index"


def open_store(folder: Path, *, buffer_bytes: int = 1 << 20, recycled_logs: int = 0) -> Rdict:
    """Open a RocksDB as a node does, but with small files, so that they are compacted often."""
    folder.mkdir(parents=True, exist_ok=True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - its only argument
    options.set_write_buffer_size(buffer_bytes)
    options.set_recycle_log_file_num(recycled_logs)
    options.set_level_zero_file_num_compaction_trigger(2)
    options.set_max_manifest_file_size(1 << 12)
    store = Rdict(str(folder), options=options)
    synced = WriteOptions()
    synced.sync = True
    store.set_write_options(synced)
    return store


def read_bytes(store: Rdict, key: bytes) -> bytes:
    """Return a value, or an empty one if the key is missing."""
    value = store.get(key, b"")
    assert isinstance(value, bytes)
    return value


class NodeWriter:
    """Writes bundles in the order of the node's own writes.

    ``form`` is "new" (a file per shard prefix), "old" (a file per package) or "oldest" (a file
    per slice); ``slices`` the masterchain seqnos at which slices begin.
    """

    def __init__(
        self,
        db_dir: Path,
        *,
        form: str = "new",
        depth: int = 0,
        mark: str = "_",
        slices: tuple[int, ...] = (0,),
        buffer_bytes: int = 1 << 20,
    ) -> None:
        self.db_dir, self.form, self.depth, self.mark = db_dir, form, depth, mark
        self.slices = slices
        self.buffer_bytes = buffer_bytes
        self.state = self._store("state")
        self.state[bytes.fromhex("54214f72")] = bytes.fromhex("f72037d902000000")
        self.index = self._store("files/globalindex")
        self.open_slices: dict[int, Rdict] = {}
        self.files: dict[int, list[tuple[int, int, int]]] = {}
        self.firsts: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = {}
        if INDEX_KEY in self.index:
            self._go_on()
        else:
            self.write_index()

    def _go_on(self) -> None:
        """Open a folder of the form "new" that another writer left, however it ended."""
        value = read_bytes(self.index, INDEX_KEY)
        count = int.from_bytes(value[4:8], "little")
        for slice_id in struct.unpack_from(f"<{count}i", value, 8):
            key = SLICE_KEY + struct.pack("<i", slice_id) + FALSE + FALSE
            record = read_bytes(self.index, key)
            if not record.endswith(FALSE):
                continue  # deleted, or not begun
            fields = struct.iter_unpack("<iqiiq", record[20:-4])
            self.firsts[slice_id] = {(one[0], one[1]): (one[2], one[3], one[4]) for one in fields}
            store = self.open_slices[slice_id] = self._store(slice_name(slice_id))
            self.files[slice_id] = []
            for number in range(int(read_bytes(store, b"slices"))):
                info = read_bytes(store, f"info.{number}".encode())
                package, place = info.decode().split(".")
                workchain, shard = place.split(":")
                signed = struct.unpack(">q", bytes.fromhex(shard))[0]
                self.files[slice_id].append((int(package), int(workchain), signed))

    def _store(self, name: str) -> Rdict:
        return open_store(self.db_dir / name, buffer_bytes=self.buffer_bytes)

    def close(self) -> None:
        for store in (self.state, self.index, *self.open_slices.values()):
            store.close()

    def write_index(self, deleted: tuple[int, ...] = ()) -> None:
        ids = sorted(self.open_slices)
        value = struct.pack(f"<I{len(ids)}i", len(ids), *ids) + bytes(8)
        self.index[INDEX_KEY] = bytes.fromhex("fcdab1a2") + value
        for slice_id in ids:
            firsts = self.firsts[slice_id]
            record = bytes.fromhex("2bd54ce4") + struct.pack("<i", slice_id) + FALSE + FALSE
            record += struct.pack("<I", len(firsts))
            for (workchain, shard), first in sorted(firsts.items()):
                record += struct.pack("<iqiiq", workchain, shard, *first)
            key = SLICE_KEY + struct.pack("<i", slice_id) + FALSE + FALSE
            self.index[key] = record + (TRUE if slice_id in deleted else FALSE)

    def write_shard_client(self, one: BlockId) -> None:
        self.state[SHARD_CLIENT] = bytes.fromhex("9da6160b") + encode_id(one)

    def write_bundle(self, bundle: McBundle, *, leave_out: tuple[BlockId, ...] = ()) -> None:
        slice_id = max(one for one in self.slices if one <= bundle.mc_seqno)
        for block in bundle.blocks:
            if block.id not in leave_out:
                self.write_block(slice_id, bundle.mc_seqno, block)
        self.write_shard_client(bundle.blocks[0].id)

    def open_slice(self, slice_id: int) -> Rdict:
        if slice_id not in self.open_slices:
            store = self._store(slice_name(slice_id))
            self.open_slices[slice_id] = store
            self.files[slice_id] = []
            self.firsts[slice_id] = {}
            if self.form != "oldest":
                store[b"status"], store[b"slice_size"] = b"sliced", b"100"
                store[b"slices"] = b"0"
            if self.form == "new":
                store[b"shard_split_depth"] = str(self.depth).encode()
            self.write_index()
        return self.open_slices[slice_id]

    def write_block(self, slice_id: int, mc_seqno: int, block: RawBlock) -> None:
        store = self.open_slice(slice_id)
        number, path, name = self.choose_file(slice_id, mc_seqno, block.id)
        offset = self._append(path, block)
        header = self.read_header(block)
        batch = WriteBatch(raw_mode=True)
        size = str(path.stat().st_size - 4).encode()
        if self.form == "oldest":
            batch[b"status"] = size
        else:
            batch[f"status.{number}".encode()] = size
            batch[f"version.{number}".encode()] = b"1"
            batch[b"slices"] = str(len(self.files[slice_id])).encode()
            if self.form == "new":
                batch[f"info.{number}".encode()] = name.encode()
        file_key = bytes.fromhex("71e4eab0") + encode_id(block.id)
        batch[hashlib.sha256(file_key).hexdigest().upper().encode()] = str(offset).encode()
        batch[bytes.fromhex("73d1577f") + encode_id(block.id)] = encode_handle(
            block.id, header.previous, mc_seqno, lt=header.end_lt, unixtime=header.gen_utime
        )
        where = struct.pack("<iq", block.id.workchain, block.id.shard)
        batch[bytes.fromhex("91e7e3f1") + where] = encode_desc(block.id.seqno, header)
        store.write(batch)
        firsts = self.firsts[slice_id]
        if (block.id.workchain, block.id.shard) not in firsts:
            first = (block.id.seqno, header.gen_utime, header.end_lt)
            firsts[block.id.workchain, block.id.shard] = first
            self.write_index()

    def read_header(self, block: RawBlock) -> Header:
        return read_header(parse_boc(block.data, check_crc=False))

    def choose_file(self, slice_id: int, mc_seqno: int, one: BlockId) -> tuple[int, Path, str]:
        package = slice_id if self.form == "oldest" else mc_seqno - (mc_seqno - slice_id) % 100
        workchain, shard = (one.workchain, MASTER) if self.form == "new" else (-1, MASTER)
        if workchain != -1:
            shard = self._prefix(one.shard)
        key = (package, workchain, shard)
        if key not in self.files[slice_id]:
            self.files[slice_id].append(key)
        hexed = f"{shard & (1 << 64) - 1:016x}"
        path = self.place_file(key)
        return self.files[slice_id].index(key), path, f"{package}.{workchain}:{hexed}"

    def place_file(self, key: tuple[int, int, int]) -> Path:
        """Return the path of the package of a first masterchain block, a workchain and a shard."""
        package, workchain, shard = key
        stem = f"archive.{package:05d}"
        if workchain != -1:
            stem += f".{workchain}{self.mark}{shard & (1 << 64) - 1:016x}"
        return self.db_dir / f"archive/packages/arch{package // 100000:04d}" / f"{stem}.pack"

    def _prefix(self, shard: int) -> int:
        bits = f"{shard & (1 << 64) - 1:064b}".rstrip("0")[:-1].ljust(64, "0")[: self.depth]
        value = int((bits + "1").ljust(64, "0"), 2)
        return value - (1 << 64) if value >> 63 else value

    def _append(self, path: Path, block: RawBlock) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            if file.tell() == 0:
                file.write(bytes.fromhex("01dd8fae"))
            file.write(encode_proof(block.id))
            offset = file.tell() - 4
            file.write(encode_entry(entry_name(block.id), block.data))
        return offset


def write_node(
    db_dir: Path, bundles: Iterable[McBundle], *, leave_out: Leave = lambda _: (), **form: Any
) -> None:
    """Write the folder of a node that has stopped; ``leave_out`` lists missing blocks."""
    with closing(NodeWriter(db_dir, **form)) as writer:
        for bundle in bundles:
            writer.write_bundle(bundle, leave_out=leave_out(bundle))
