"""Reads persistent states: whole shard states that a node has written to files as bags of cells.

archive/states/state_<mc seqno>_<workchain>_<shard>_<KEY>                        a whole state
archive/states/statesplit_<mc seqno>_<workchain>_<shard>_<KEY>                   head of a split one
archive/states/stateaccount_<mc seqno>_<workchain>_<shard>_<part's shard>_<KEY>  a part

Shards are in hexadecimal. The head is the state, or a Merkle proof of it, with branches of the
accounts pruned; a part contains the accounts of one shard prefix. Its root is the branch, or the
same node with the whole prefix in its label, or refers to one of these; the hash decides which.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import read_label, store_label
from tonlake.ingest.decode.cell.exotic import MERKLE_PROOF
from tonlake.ingest.decode.cell.packed import naming, split_packed
from tonlake.ingest.decode.cell.tree import read_bits
from tonlake.ingest.decode.wholestate import Branch, WholeState, list_pruned
from tonlake.ingest.errors import IngestError, SourceError
from tonlake.ingest.source.node.bag import BagCells, StateBag
from tonlake.ingest.source.node.shardstate import OpenState, StatePart

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.ingest.source.node.shardstate import NamedState, NamedStates

STATES_FOLDER = "archive/states"

_NAME = re.compile(r"state(?:split)?_(\d+)_(-?\d+)_([0-9A-Fa-f]{1,16})_[0-9A-F]{64}")
_PART_NAME = re.compile(
    r"stateaccount_(\d+)_(-?\d+)_([0-9A-Fa-f]{1,16})_([0-9A-Fa-f]{1,16})_[0-9A-F]{64}"
)
_SPLIT = "statesplit_"
_ACCOUNT_BITS, _SHARD_BITS = 256, 64
_EXOTIC_BIT = 8

Key = tuple[int, int, int]
"""Masterchain seqno, workchain and shard (unsigned) of a state."""


class StateFiles:
    """The persistent states of a node's folder, by masterchain seqno, workchain and shard."""

    def __init__(self, db_dir: Path) -> None:
        """List the files of the folder."""
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
        """Open one state, and verify its root hash against the one that the block names.

        Raises:
            SourceError: a file is damaged or belongs to another state, or a part is missing.
        """
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
        """Open the part that contains a branch which is pruned in the head."""
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
    return StatePart(bag.cells, partial(BagCells, bag.cells.place), branch)


def _find_root(bag: StateBag, root_hash: bytes) -> bytes:
    """Return the root cell of a state, which may be wrapped in a Merkle proof."""
    root = bag.root
    (packed,) = bag.cells.fetch([root])
    if packed[0] & _EXOTIC_BIT and packed[2] == MERKLE_PROOF:
        (root,) = split_packed(packed, bag.cells.width)[1]
    found, _ = bag.get_digest(root)
    if found != root_hash:
        raise SourceError(
            f"its root cell has the hash {found.hex()}, but the block names {root_hash.hex()}: the"
            " file is damaged, or belongs to another state"
        )
    return root


def _match(bag: StateBag, branch: Branch, expected: bytes) -> Branch | None:
    """Return the branch with the expected hash in a part's bag; None if it is not there."""
    (packed,) = bag.cells.fetch([bag.root])
    for cell in (bag.root, *split_packed(packed, bag.cells.width)[1][:1]):
        if bag.get_digest(cell)[0] == expected:
            return branch._replace(cell=cell)
        if _hash_below(bag, cell, branch) == expected:
            return Branch(cell)
    return None


def _hash_below(bag: StateBag, cell: bytes, branch: Branch) -> bytes | None:
    """Return the hash that a node would have without the branch's prefix in its label.

    None if its label does not begin with the prefix, or it is not a node of a dictionary.
    """
    (packed,) = bag.cells.fetch([cell])
    body, children = split_packed(packed, bag.cells.width)
    if body[0] & _EXOTIC_BIT:
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
    store_label(node, key & (1 << length) - 1, length, branch.bits_left)
    node.store_uint(value & (1 << rest) - 1, rest)
    head = node.tree.cells[node.end()]
    below = [bag.get_digest(child) for child in children]
    depths = b"".join(depth.to_bytes(2, "big") for _, depth in below)
    hashes = b"".join(digest for digest, _ in below)
    return sha256(bytes((len(children),)) + head[1:] + depths + hashes).digest()
