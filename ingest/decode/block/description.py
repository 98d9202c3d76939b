"""Reads the description of a transaction: the columns ``descr`` to the last of split_info.

TL-B: the seven constructors of TransactionDescr. For positions in cells see module ``currency``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.phase import (
    NO_ACTION,
    NO_BOUNCE,
    NO_COMPUTE,
    NO_CREDIT,
    NO_SPLIT,
    NO_STORAGE,
    Phase,
    read_compute,
    read_maybe_action,
    read_maybe_bounce,
    read_maybe_credit,
    read_maybe_storage,
    read_split,
    read_storage,
)
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.decode.cell.tree import CellTree

    Children = tuple[int, ...]
    Reader = Callable[[CellTree, Children, int, int], Phase]


def read_description(tree: CellTree, cell: int) -> Phase:
    """Read TransactionDescr; return the columns ``descr`` to the last of split_info."""
    value, bits = tree.bits(cell)
    tag = value >> (bits - 4)
    reader = _DESCR_READERS.get(tag)
    if reader is None:
        raise DecodeError(f"description of unknown kind {tag:04b}")
    return reader(tree, tree.links[cell], value, bits - 4)


def _read_ord(tree: CellTree, children: Children, value: int, left: int) -> Phase:
    """Read trans_ord$0000."""
    left -= 1
    credit_first = value >> left & 1 == 1
    storage, left = read_maybe_storage(value, left)
    credit, ref, left = read_maybe_credit(tree, children, 0, value, left)
    compute, ref, left = read_compute(tree, children, ref, value, left)
    action, ref, left = read_maybe_action(tree, children, ref, value, left)
    left -= 1
    aborted = value >> left & 1 == 1
    bounce, left = read_maybe_bounce(value, left)
    destroyed = _read_last_bit(value, left)
    flags = ("ord", aborted, destroyed, credit_first, None, None)
    return (*flags, *storage, *credit, *compute, *action, *bounce, *NO_SPLIT)


def _read_storage_only(_tree: CellTree, _children: Children, value: int, left: int) -> Phase:
    """Read trans_storage$0001."""
    storage, _ = read_storage(value, left)
    flags = ("storage", None, None, None, None, None)
    rest = (*NO_CREDIT, *NO_COMPUTE, *NO_ACTION, *NO_BOUNCE, *NO_SPLIT)
    return (*flags, *storage, *rest)


def _read_tick_tock(tree: CellTree, children: Children, value: int, left: int) -> Phase:
    """Read trans_tick_tock$001; ``left`` is before its bit is_tock."""
    is_tock = value >> left & 1 == 1
    storage, left = read_storage(value, left)
    run, aborted, destroyed = _read_run(tree, children, 0, value, left)
    flags = ("tick_tock", aborted, destroyed, None, is_tock, None)
    return (*flags, *storage, *NO_CREDIT, *run, *NO_BOUNCE, *NO_SPLIT)


def _read_split_prepare(tree: CellTree, children: Children, value: int, left: int) -> Phase:
    """Read trans_split_prepare$0100."""
    split, left = read_split(value, left)
    storage, left = read_maybe_storage(value, left)
    run, aborted, destroyed = _read_run(tree, children, 0, value, left)
    flags = ("split_prepare", aborted, destroyed, None, None, None)
    return (*flags, *storage, *NO_CREDIT, *run, *NO_BOUNCE, *split)


def _read_split_install(_tree: CellTree, children: Children, value: int, left: int) -> Phase:
    """Read trans_split_install$0101; its first reference is the prepare transaction."""
    split, left = read_split(value, left)
    flags = ("split_install", None, None, None, None, _read_last_bit(value, left))
    _ = children[0]
    rest = (*NO_STORAGE, *NO_CREDIT, *NO_COMPUTE, *NO_ACTION, *NO_BOUNCE)
    return (*flags, *rest, *split)


def _read_merge_prepare(_tree: CellTree, _children: Children, value: int, left: int) -> Phase:
    """Read trans_merge_prepare$0110."""
    split, left = read_split(value, left)
    storage, left = read_storage(value, left)
    flags = ("merge_prepare", _read_last_bit(value, left), None, None, None, None)
    return (*flags, *storage, *NO_CREDIT, *NO_COMPUTE, *NO_ACTION, *NO_BOUNCE, *split)


def _read_merge_install(tree: CellTree, children: Children, value: int, left: int) -> Phase:
    """Read trans_merge_install$0111; its first reference is the prepare transaction."""
    split, left = read_split(value, left)
    storage, left = read_maybe_storage(value, left)
    credit, ref, left = read_maybe_credit(tree, children, 1, value, left)
    run, aborted, destroyed = _read_run(tree, children, ref, value, left)
    flags = ("merge_install", aborted, destroyed, None, None, None)
    return (*flags, *storage, *credit, *run, *NO_BOUNCE, *split)


def _read_run(
    tree: CellTree, children: Children, ref: int, value: int, left: int
) -> tuple[Phase, bool, bool]:
    """Read compute_ph, action, aborted and destroyed; return the columns of both phases first."""
    compute, ref, left = read_compute(tree, children, ref, value, left)
    action, _, left = read_maybe_action(tree, children, ref, value, left)
    left -= 2
    flags = value >> left
    return (*compute, *action), flags & 2 == 2, flags & 1 == 1  # noqa: PLR2004 - two bits


def _read_last_bit(value: int, left: int) -> bool:
    return value >> (left - 1) & 1 == 1


_DESCR_READERS: dict[int, Reader] = {
    0b0000: _read_ord,
    0b0001: _read_storage_only,
    0b0010: _read_tick_tock,
    0b0011: _read_tick_tock,
    0b0100: _read_split_prepare,
    0b0101: _read_split_install,
    0b0110: _read_merge_prepare,
    0b0111: _read_merge_install,
}
