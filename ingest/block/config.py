"""The network's configuration: key blocks and masterchain states hold all of it.

TL-B: ConfigParams = config_addr:bits256 config:^(Hashmap 32 ^Cell); keys are signed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.block.shard import read_mc_extra
from ingest.cell.boc import serialize_boc
from ingest.cell.dictionary import iter_hashmap

if TYPE_CHECKING:
    from ingest.cell.boc import CellTree

_KEY_BITS = 32

ConfigRow = tuple[int, int, int, bytes, bytes]
"""A row of the table ``config_params``."""


def config_rows(tree: CellTree, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters of a key block; none for any other masterchain block.

    Raises:
        DecodeError: not a masterchain block.
    """
    root = read_mc_extra(tree).config
    return [] if root is None else read_params(tree, root, mc_seqno, utime)


def read_params(tree: CellTree, root: int, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters of the dictionary (Hashmap 32 ^Cell) that begins at ``root``."""
    rows = []
    for key, value in iter_hashmap(tree, root, _KEY_BITS):
        param = key - (1 << _KEY_BITS) if key >> (_KEY_BITS - 1) else key
        cell = value.load_ref()
        rows.append((mc_seqno, utime, param, tree.hash(cell), serialize_boc(tree, [cell])))
    return rows
