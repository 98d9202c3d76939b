"""Derives what rows of blocks leave out: previous blocks, and the tops of all shards.

Shards change as in the masterchain: a block after a split takes the place of its parent, one after
a merge that of both children. The tops before the first masterchain block, and after one that is
missing, are unknown until the shard has a block again.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_files_between
from tonlake.lake.schema import BLOCKS, SHARD_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tonlake.ingest.decode.rows import Row
    from tonlake.lake.log.state import LogState

_MASK = (1 << 64) - 1

Shard = tuple[int, int]
"""Workchain, and shard as a signed integer."""


class Top(NamedTuple):
    """The newest known block of a shard, with the columns of ``shard_blocks``."""

    workchain: int
    shard: int
    seqno: int
    root_hash: bytes
    file_hash: bytes
    start_lt: int
    end_lt: int
    gen_utime: int


class Tops:
    """The newest block of every shard as of the last masterchain block that was added."""

    def __init__(self) -> None:
        """Start without knowledge."""
        self._last = 0
        self._tops: dict[Shard, Top] = {}

    def read(self, lake_dir: Path, state: LogState, mc_seqno: int) -> None:
        """Continue after a masterchain block of the lake, if the lake has it."""
        if mc_seqno == self._last:
            return
        self._last, self._tops = mc_seqno, {}
        is_then = pc.field("mc_seqno") == mc_seqno
        for file in list_files_between(state, mc_seqno, mc_seqno, SHARD_BLOCKS.name):
            for row in read_rows(lake_dir, file, Top._fields, is_then).to_pylist():
                self._tops[row["workchain"], row["shard"]] = Top(**row)

    def add(
        self, mc_seqno: int, blocks: Iterable[Mapping[str, Any]]
    ) -> tuple[list[Row], list[Row]]:
        """Add the blocks of a masterchain block; return rows of ``blocks`` and ``shard_blocks``.

        Raises:
            ValueError: a shard block is missing; the tops are unknown then.
        """
        if mc_seqno != self._last + 1:
            self._tops.clear()
        self._last = mc_seqno
        rows = []
        try:
            for block in sorted(blocks, key=itemgetter("seqno")):
                known = {**block, **self._replace(block)}
                rows.append(tuple(known.get(name) for name in BLOCKS.names))
        except ValueError:
            self._tops.clear()
            raise
        tops = [(mc_seqno, *top) for _shard, top in sorted(self._tops.items())]
        return rows, tops

    def _replace(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Make a block the top of its shard; return the columns about those before it."""
        workchain, shard = block["workchain"], block["shard"]
        parents = [shard]
        if block["after_merge"]:
            parents = [find_child(shard, right=right) for right in (False, True)]
        elif block["after_split"]:
            parents = [find_parent(shard)]
        found: dict[str, Any] = {}
        for prefix, parent in zip(("prev", "prev2"), parents, strict=False):
            top = self._tops.get((workchain, parent))
            is_exact = not block["after_merge"]
            if top is not None and (
                top.seqno >= block["seqno"] or (is_exact and top.seqno != block["seqno"] - 1)
            ):
                raise ValueError(
                    f"block ({workchain},{shard & _MASK:016x},{block['seqno']}) follows block"
                    f" {top.seqno} of its shard: blocks between them are missing"
                )
            found |= {
                f"{prefix}_shard": parent,
                f"{prefix}_seqno": top.seqno if top else block["seqno"] - 1 if is_exact else None,
                f"{prefix}_root_hash": top and top.root_hash,
                f"{prefix}_file_hash": top and top.file_hash,
            }
        if not block["after_split"] or self._has_both(workchain, shard):
            for parent in parents:
                self._tops.pop((workchain, parent), None)
        self._tops[workchain, shard] = Top(*(block[name] for name in Top._fields))
        return found

    def _has_both(self, workchain: int, shard: int) -> bool:
        """Whether the other child of a shard's parent has a block already."""
        parent = find_parent(shard)
        others = (find_child(parent, right=right) for right in (False, True))
        return all(other == shard or (workchain, other) in self._tops for other in others)


def find_parent(shard: int) -> int:
    """Return the shard that was split into this one and its sibling."""
    number = shard & _MASK
    lowest = number & -number
    return _sign(number - lowest if number & lowest << 1 else number + lowest)


def find_child(shard: int, *, right: bool) -> int:
    """Return one of the shards that were merged into this one."""
    number = shard & _MASK
    half = (number & -number) >> 1
    return _sign(number + half if right else number - half)


def _sign(shard: int) -> int:
    shard &= _MASK
    return shard - (1 << 64) if shard >> 63 else shard
