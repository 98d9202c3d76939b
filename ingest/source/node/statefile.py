"""Finds the shard states of a node, and reads those that it has written to files as bags of cells.

A masterchain block names the newest block of each shard (ShardHashes), and each block the root hash
of the state after it (Merkle update); other sources about a state need not be trusted.

archive/states/zerostate_<workchain>_<KEY>             KEY = SHA-256 of db.filedb.key.zeroStateFile
static/<FILE HASH>                                     a zero state as provided by the operator
archive/states/state_<mc seqno>_<workchain>_<shard>_<KEY>                        a whole state
archive/states/statesplit_<mc seqno>_<workchain>_<shard>_<KEY>                   head of a split one
archive/states/stateaccount_<mc seqno>_<workchain>_<shard>_<part's shard>_<KEY>  a part

Shards are in hexadecimal. The head is the state, or a Merkle proof of it, with branches of the
accounts pruned; a part contains the accounts of one shard prefix. Its root is the branch, or the
same node with the whole prefix in its label, or refers to one of these; the hash decides which.

A bag may be larger than memory: the file is mapped, and cells have numbers. When it is opened, the
offset, hash and depth of each of its cells are computed, children first, and stored in mapped files
of a private folder, 42 bytes a cell. For a cell above pruned branches these are its hash and depth
at level 0: those in the tree from which the branches were pruned.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial, reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from struct import Struct
from typing import NamedTuple, TypeAlias

from tonlake.ingest.blocks import MASTERCHAIN_SHARD, BlockId, BlockSource, RawBlock, ZeroState
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import read_label, write_label
from tonlake.ingest.decode.cell.envelope import NATIVE, read_envelope
from tonlake.ingest.decode.cell.packed import PackedCells, naming, split_packed
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, CellTree, exotic_mask, read_bits
from tonlake.ingest.decode.wholestate import Branch, WholeState, list_pruned
from tonlake.ingest.errors import BlockUnavailable, BocError, IngestError, SourceError
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.rocks import Scratch
from tonlake.ingest.source.node.tl import ZERO_STATE_FILE_KEY, pack_block_id, pack_constructor
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.regular import check_regular, read_regular
from tonlake.lake.file.rows import iter_tuples

STATES_FOLDER = "archive/states"
STATIC_FOLDER = "static"
_ZERO_NAME = re.compile(r"zerostate_(-?\d+)_([0-9A-F]{64})")


def read_zero_states(db_dir: Path, known: Iterable[BlockId]) -> tuple[ZeroState, ...]:
    """Return the zero states of a node's folder by workchain, the masterchain's first."""
    found: dict[int, ZeroState] = {}
    damage: dict[int, SourceError] = {}
    for path, name, workchain, key in _list_files(db_dir, known):
        if workchain in found:
            continue
        try:
            state = _read_state(path, name, workchain)
        except SourceError as error:
            damage.setdefault(workchain, error)
            continue
        if _make_key(workchain, state.root_hash, state.file_hash) == key:
            found[workchain] = state
        else:
            reason = f"{name}: the bytes are not those of the state it is named after"
            damage.setdefault(workchain, SourceError(reason))
    for workchain in damage.keys() - found.keys():
        raise damage[workchain]
    return tuple(found[workchain] for workchain in sorted(found))


def _list_files(db_dir: Path, known: Iterable[BlockId]) -> Iterator[tuple[Path, str, int, str]]:
    """Yield path, name, workchain and key of each file."""
    folder = db_dir / STATES_FOLDER
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if match := _ZERO_NAME.fullmatch(path.name):
            yield path, f"{STATES_FOLDER}/{path.name}", int(match[1]), match[2]
    for block_id in known:
        name = f"{STATIC_FOLDER}/{block_id.file_hash.hex().upper()}"
        if (path := db_dir / name).exists():
            workchain, hashes = block_id.workchain, (block_id.root_hash, block_id.file_hash)
            yield path, name, workchain, _make_key(workchain, *hashes)


def read_zero_block(db_dir: Path, known: Iterable[BlockId]) -> RawBlock | None:
    """Return the masterchain's zero state in the form of a block; None if the folder has none."""
    for one in read_zero_states(db_dir, known):
        if one.workchain == MASTERCHAIN:
            hashes = one.root_hash, one.file_hash
            return RawBlock(BlockId(MASTERCHAIN, MASTERCHAIN_SHARD, 0, *hashes), one.data)
    return None


def _read_state(path: Path, name: str, workchain: int) -> ZeroState:
    try:
        data = read_regular(path)
        tree = parse_boc(data)
        root_hash = tree.hash(tree.roots[0])
    except OSError as error:
        raise SourceError(f"{name}: {error.strerror}") from error
    except BocError as error:
        raise SourceError(f"{name}: {error}") from error
    return ZeroState(workchain, root_hash, sha256(data).digest(), data)


def _make_key(workchain: int, root_hash: bytes, file_hash: bytes) -> str:
    block_id = BlockId(workchain, MASTERCHAIN_SHARD, 0, root_hash, file_hash)
    key = pack_constructor(ZERO_STATE_FILE_KEY) + pack_block_id(block_id)
    return sha256(key).hexdigest().upper()


MAX_LEVELED = 1 << 16
"""Most cells under a Merkle cell: as many as an account may have (ConfigParam 43)."""

_HANDLE, _START, _DIGEST = Struct(">Q"), Struct("=Q"), Struct(">32sH")
_HASHES_BIT, _MAX_REFS = 0x10, 4
_STORED_BYTES = 34
_HASH_AT, _HASH_BYTES, _DEPTH_BYTES = 4, 32, 2


class BagCells:
    """The cells of a bag, packed (tonlake.ingest.decode.cell.packed); a handle is a cell number."""

    width = _HANDLE.size

    def __init__(self, path: Path, name: str, starts: Path, ref_bytes: int) -> None:
        """Map the file, and that of cell offsets; ``ref_bytes`` is the size of a reference."""
        self.reopen = partial(BagCells, path, name, starts, ref_bytes)
        self.name, self._ref_bytes = name, ref_bytes
        self._data, self._starts = _map_file(path), _map_file(starts)
        self.count = len(self._starts) // _START.size

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return the packed cells of ``handles``."""
        if NATIVE is not None:
            data, starts = self._data, self._starts
            found: list[bytes] = NATIVE.read_cells(data, starts, self._ref_bytes, handles)
            if None not in found:
                return found
        with naming(self.name):
            cells = [self.read(*_HANDLE.unpack(handle)) for handle in handles]
            return [body + b"".join(map(_HANDLE.pack, refs)) for body, refs in cells]

    def read(self, cell: int) -> tuple[bytes, list[int]]:
        """Return descriptors and data of a cell, and the numbers of its children."""
        (at,) = _START.unpack_from(self._starts, cell * _START.size)
        data, width = self._data, self._ref_bytes
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
        if NATIVE is None:
            return before
        behind: int = NATIVE.digest_cells(
            self._data, self._starts, self._ref_bytes, digests, before
        )
        return behind

    def close(self) -> None:
        """Close the files."""
        self._data.close()
        self._starts.close()


class StateBag:
    """A bag with the hashes of all its cells; closing it removes its temporary files."""

    def __init__(self, path: Path, name: str) -> None:
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
        self.cells = BagCells(path, self.name, folder / "starts", envelope.ref_bytes)
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
        body, refs = self.cells.read(cell)
        if body[0] & EXOTIC_BIT:
            if refs:
                return self._digest_merkle(cell)
            mask = exotic_mask(body, ())
            if mask:
                depth_at = _HASH_AT + mask.bit_count() * _HASH_BYTES
                depth = int.from_bytes(body[depth_at : depth_at + _DEPTH_BYTES], "big")
                return body[_HASH_AT : _HASH_AT + _HASH_BYTES], depth
        mask = reduce(or_, (self.cells.read(ref)[0][0] >> 5 for ref in refs), 0)
        if not body[0] & EXOTIC_BIT and body[0] >> 5 != mask:
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
    if NATIVE is not None:
        found: tuple[int, int] = NATIVE.find_starts(data, first, end, ref_bytes, starts)
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
    return ((d1 >> 5).bit_count() + 1) * _STORED_BYTES if d1 & _HASHES_BIT else 0


_NAME = re.compile(r"state(?:split)?_(\d+)_(-?\d+)_([0-9A-Fa-f]{1,16})_[0-9A-F]{64}")
_PART_NAME = re.compile(
    r"stateaccount_(\d+)_(-?\d+)_([0-9A-Fa-f]{1,16})_([0-9A-Fa-f]{1,16})_[0-9A-F]{64}"
)
_SPLIT = "statesplit_"
_ACCOUNT_BITS, _SHARD_BITS = 256, 64

Key = tuple[int, int, int]
"""Masterchain seqno, workchain and shard (unsigned) of a state."""


class StateFiles:
    """The persistent states of a node's folder, by masterchain seqno, workchain and shard."""

    def __init__(self, db_dir: Path) -> None:
        self._found: dict[Key, Path] = {}
        self._parts: dict[Key, list[tuple[int, Path]]] = {}
        folder = db_dir / STATES_FOLDER
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if match := _NAME.fullmatch(path.name):
                # Sorted by name, a whole state comes before a split one.
                self._found.setdefault(_read_key(match), path)
            elif match := _PART_NAME.fullmatch(path.name):
                part = int(match[4], 16), path
                self._parts.setdefault(_read_key(match), []).append(part)

    def list_kept(self, first: int, last: int) -> list[int]:
        """Return the masterchain seqnos from ``first`` to ``last`` with files, newest first."""
        return sorted({key[0] for key in self._found if first <= key[0] <= last}, reverse=True)

    def has(self, named: NamedStates) -> bool:
        """Return whether there are files for the states of all shards after a masterchain block."""
        return all(_name(named.mc_seqno, state) in self._found for state in named.states)

    @contextmanager
    def open(self, named: NamedStates, state: NamedState) -> Iterator[OpenState]:
        """Open one state, and verify its root hash against the one that the block names."""
        key = _name(named.mc_seqno, state)
        path = self._found[key]
        with ExitStack() as files:
            head = files.enter_context(closing(_open_bag(path)))
            with naming(head.name):
                top = WholeState(head.cells, _find_root(head, state.root_hash))
                accounts = top.find_accounts()
                pruned: list[Branch] = []
                held = [] if accounts is None else [accounts]
                if accounts is not None and path.name.startswith(_SPLIT):
                    pruned, held = list_pruned(head.cells, accounts)
            parts = [_describe(head, branch) for branch in held]
            parts += [self._open_part(files, key, head, branch) for branch in pruned]
            yield OpenState(top, parts)

    def _open_part(self, files: ExitStack, key: Key, head: StateBag, branch: Branch) -> StatePart:
        expected, _ = head.get_digest(branch.cell)
        prefix = branch.key << branch.bits_left
        for shard, path in self._parts.get(key, ()):
            size = _SHARD_BITS - (shard & -shard).bit_length()
            agree = min(size, _ACCOUNT_BITS - branch.bits_left)
            ours = shard << _ACCOUNT_BITS - _SHARD_BITS
            if (ours ^ prefix) >> _ACCOUNT_BITS - agree:
                continue
            bag = files.enter_context(closing(_open_bag(path)))
            found = _match(bag, branch, expected)
            if found is None:
                raise SourceError(
                    f"{bag.name}: it does not contain the accounts with hash {expected.hex()} named"
                    f" by {head.name}: the file is damaged, or belongs to another state"
                )
            return _describe(bag, found)
        raise SourceError(
            f"{head.name}: it names accounts with the hash {expected.hex()} and the prefix"
            f" {branch.key:0{_ACCOUNT_BITS - branch.bits_left}b}, but the file of this part, "
            "stateaccount_…, is missing"
        )


def _read_key(match: re.Match[str]) -> Key:
    return int(match[1]), int(match[2]), int(match[3], 16)


def _name(mc_seqno: int, state: NamedState) -> Key:
    return mc_seqno, state.workchain, state.shard & (1 << _SHARD_BITS) - 1


def _open_bag(path: Path) -> StateBag:
    return StateBag(path, f"{STATES_FOLDER}/{path.name}")


def _describe(bag: StateBag, branch: Branch) -> StatePart:
    return StatePart(bag.cells, bag.cells.reopen, branch)


def _find_root(bag: StateBag, root_hash: bytes) -> bytes:
    root = bag.root
    (packed,) = bag.cells.fetch([root])
    if packed[0] & EXOTIC_BIT and packed[2] == MERKLE_PROOF:
        (root,) = split_packed(packed, bag.cells.width)[1]
    found, _ = bag.get_digest(root)
    if found != root_hash:
        raise SourceError(
            f"its root cell has the hash {found.hex()}, but the block names {root_hash.hex()}: the"
            " file is damaged, or belongs to another state"
        )
    return root


def _match(bag: StateBag, branch: Branch, expected: bytes) -> Branch | None:
    (packed,) = bag.cells.fetch([bag.root])
    for cell in (bag.root, *split_packed(packed, bag.cells.width)[1][:1]):
        if bag.get_digest(cell)[0] == expected:
            return branch._replace(cell=cell)
        if _hash_below(bag, cell, branch) == expected:
            return Branch(cell)
    return None


def _hash_below(bag: StateBag, cell: bytes, branch: Branch) -> bytes | None:
    """Return the hash of a node without the branch's prefix in its label; None if not there."""
    (packed,) = bag.cells.fetch([cell])
    body, children = split_packed(packed, bag.cells.width)
    if body[0] & EXOTIC_BIT:
        return None
    value, size = read_bits(body)
    try:
        key, left, rest = read_label(value, size, _ACCOUNT_BITS, 0)
    except IngestError:
        return None
    length = branch.bits_left - left
    if length < 0 or key >> length != branch.key:
        return None
    node = CellBuilder()
    node.store_uint(*write_label(key & (1 << length) - 1, length, branch.bits_left))
    node.store_uint(value & (1 << rest) - 1, rest)
    head = node.tree.cells[node.end()]
    below = [bag.get_digest(child) for child in children]
    depths = b"".join(depth.to_bytes(2, "big") for _, depth in below)
    hashes = b"".join(digest for digest, _ in below)
    return sha256(bytes((len(children),)) + head[1:] + depths + hashes).digest()


SHARDS_BEHIND = 1_000
"""Masterchain blocks before a state that are searched for the newest blocks of its shards."""

_BLOCK = ("workchain", "shard", "seqno", "root_hash", "file_hash")


class NamedState(NamedTuple):
    """The state of one shard (signed), and the hash of its root cell."""

    workchain: int
    shard: int
    root_hash: bytes


class NamedStates(NamedTuple):
    """The states of all shards after a masterchain block, configured by block ``key_seqno``."""

    mc_seqno: int
    root_hash: bytes
    prev_root_hash: bytes
    key_seqno: int
    states: tuple[NamedState, ...]


class StatePart(NamedTuple):
    """A branch of accounts, the store of its cells, and how another process opens the store."""

    store: PackedCells
    reopen: Callable[[], PackedCells]
    accounts: Branch


class OpenState(NamedTuple):
    """The state of one shard: its top, and its accounts in parts, in order."""

    top: WholeState
    parts: list[StatePart]


class CellDbStates:
    """The states in celldb."""

    def __init__(self, celldb: CellDb) -> None:
        self._celldb = celldb

    def list_kept(self, first: int, last: int) -> list[int]:
        """Return the masterchain seqnos of a range with states, canonical or not, newest first."""
        found = {
            block.seqno for block, _ in self._celldb.states() if block.workchain == MASTERCHAIN
        }
        return sorted((seqno for seqno in found if first <= seqno <= last), reverse=True)

    def has(self, named: NamedStates) -> bool:
        """Return whether the root cells of all shards are stored."""
        return all(self._celldb.get(state.root_hash) is not None for state in named.states)

    @contextmanager
    def open(self, _named: NamedStates, state: NamedState) -> Iterator[OpenState]:
        """Open the state of one shard, as a single part."""
        top = WholeState(self._celldb, state.root_hash)
        accounts = top.find_accounts()
        reopen = partial(CellDb, self._celldb.folder)
        parts = [] if accounts is None else [StatePart(self._celldb, reopen, accounts)]
        yield OpenState(top, parts)


StateStore: TypeAlias = StateFiles | CellDbStates
"""A store of whole states; its methods raise SourceError."""


def name_states(source: BlockSource, mc_seqno: int) -> NamedStates:
    """Return the root hashes of all shard states after a masterchain block."""
    found: dict[tuple[object, ...], bytes] = {}
    tables = decode_bundle(source.read_bundle(mc_seqno))
    tops = [
        top
        for at, *top in iter_tuples(tables["shard_blocks"], ("mc_seqno", *_BLOCK))
        if at == mc_seqno
    ]
    names = ("workchain", "seqno", "root_hash", "prev_root_hash", "key_block")
    (master,) = (
        row[1:]
        for row in iter_tuples(tables["blocks"], (*names, "prev_key_block_seqno"))
        if row[:2] == (MASTERCHAIN, mc_seqno)
    )
    at, oldest = mc_seqno, max(1, mc_seqno - SHARDS_BEHIND)
    lacking = {tuple(top) for top in tops if top[2]}
    while True:
        for *block, state_hash in iter_tuples(tables["blocks"], (*_BLOCK, "state_root_hash")):
            found[tuple(block)] = state_hash
        if lacking <= found.keys() or at <= oldest:
            break
        at -= 1
        tables = decode_bundle(source.read_bundle(at))
    if not lacking <= found.keys():
        raise SourceError(
            f"masterchain block {mc_seqno}: a shard block that it names is in none of the"
            f" {SHARDS_BEHIND} masterchain blocks before it, so its state hash is unknown"
        )
    ordered = sorted(tops, key=lambda top: (top[0], top[1] & (1 << 64) - 1))
    # A zero state has seqno 0; its id contains the hash of the state.
    states = tuple(
        NamedState(top[0], top[1], found[tuple(top)] if top[2] else top[3]) for top in ordered
    )
    seqno, root_hash, before, is_key, key_before = master
    return NamedStates(seqno, root_hash, before, seqno if is_key else key_before, states)


def find_states(
    source: BlockSource, store: StateStore, seqnos: Sequence[int]
) -> NamedStates | None:
    """Return the first of ``seqnos`` for which the store has the states of all shards."""
    for mc_seqno in seqnos:
        try:
            named = name_states(source, mc_seqno)
        except BlockUnavailable:
            continue
        if store.has(named):
            return named
    return None
