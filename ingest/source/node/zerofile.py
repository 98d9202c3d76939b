"""Reads zero states from a node's folder.

archive/states/zerostate_<workchain>_<KEY>    KEY = SHA-256 of db.filedb.key.zeroStateFile
static/<FILE HASH>                            the same bytes, as provided by the operator
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import TYPE_CHECKING

from tonlake.ingest.blocks import BlockId, RawBlock, ZeroState
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError, SourceError
from tonlake.ingest.source.node.handle import MASTERCHAIN_SHARD
from tonlake.ingest.source.node.tl import ZERO_STATE_FILE_KEY, pack_block_id, pack_constructor
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.regular import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

STATES_FOLDER = "archive/states"
STATIC_FOLDER = "static"
_NAME = re.compile(r"zerostate_(-?\d+)_([0-9A-F]{64})")


def read_zero_states(db_dir: Path, known: Iterable[BlockId]) -> tuple[ZeroState, ...]:
    """Return the zero states of a node's folder by workchain, the masterchain's first.

    A damaged file is skipped if another file has the same state.

    Args:
        db_dir: The node's folder.
        known: Ids of zero states (seqno 0) for which the node has handles; they locate files
            that are only under ``static``.

    Raises:
        SourceError: a file's bytes do not match its name.
    """
    found: dict[int, ZeroState] = {}
    damage: dict[int, SourceError] = {}
    for path, name, workchain, is_right in _list_files(db_dir, known):
        if workchain in found:
            continue
        try:
            state = _read_state(path, name, workchain)
        except SourceError as error:
            damage.setdefault(workchain, error)
            continue
        if is_right(state):
            found[workchain] = state
        else:
            reason = f"{name}: the bytes are not those of the state it is named after"
            damage.setdefault(workchain, SourceError(reason))
    for workchain in damage.keys() - found.keys():
        raise damage[workchain]
    return tuple(found[workchain] for workchain in sorted(found))


def _list_files(
    db_dir: Path, known: Iterable[BlockId]
) -> Iterator[tuple[Path, str, int, Callable[[ZeroState], bool]]]:
    """Yield path, name and workchain of each file, and a predicate that verifies its state."""
    folder = db_dir / STATES_FOLDER
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            name = f"{STATES_FOLDER}/{path.name}"
            yield path, name, int(match[1]), partial(_has_key, match[2])
    for block_id in known:
        name = f"{STATIC_FOLDER}/{block_id.file_hash.hex().upper()}"
        if (path := db_dir / name).exists():
            yield path, name, block_id.workchain, partial(_has_hashes, block_id)


def read_zero_block(db_dir: Path, known: Iterable[BlockId]) -> RawBlock | None:
    """Return the masterchain's zero state in the form of a block; None if the folder has none.

    Raises:
        SourceError: see ``read_zero_states``.
    """
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
    return ZeroState(workchain, root_hash, hashlib.sha256(data).digest(), data)


def _has_key(digest: str, state: ZeroState) -> bool:
    block_id = BlockId(state.workchain, MASTERCHAIN_SHARD, 0, state.root_hash, state.file_hash)
    key = pack_constructor(ZERO_STATE_FILE_KEY) + pack_block_id(block_id)
    return hashlib.sha256(key).hexdigest().upper() == digest


def _has_hashes(block_id: BlockId, state: ZeroState) -> bool:
    return (state.file_hash, state.root_hash) == (block_id.file_hash, block_id.root_hash)
