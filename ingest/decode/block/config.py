"""Reads the network's configuration, which key blocks and masterchain states contain.

TL-B: ConfigParams = config_addr:bits256 config:^(Hashmap 32 ^Cell); keys are signed.
Functions raise DecodeError or BocError for trees of other types.
"""

from tonlake.ingest.blocks import BlockId, KeyMark
from tonlake.ingest.decode.block.header import (
    McExtra,
    check_tag,
    read_mc_extra,
    read_own_info,
    read_parts,
)
from tonlake.ingest.decode.block.message import sign_int32
from tonlake.ingest.decode.block.state import read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import DecodeError

_KEY_BITS = 32
VERSION_PARAM = 8
_VERSION_TAG = 0xC4
_WORKCHAINS = 12
"""ConfigParam 12: workchains:(HashmapE 32 WorkchainDescr)."""

_WORKCHAIN_TAGS = (0xA6, 0xA7)
_BITS_BEFORE_ZERO_STATE = 32 + 3 * 8 + 3 + 13
"""enabled_since, three split depths, basic, active, accept_msgs, flags."""

_WHOLE_SHARD = -(1 << 63)

ConfigRow = tuple[int, int, int, bytes, bytes]
"""A row of the table ``config_params``."""


def config_rows(tree: CellTree, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters of a key block; empty for any other masterchain block."""
    root = read_mc_extra(tree).config
    return [] if root is None else read_params(tree, root, mc_seqno, utime)


def read_params(tree: CellTree, root: int, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters in the dictionary (Hashmap 32 ^Cell) with root cell ``root``."""
    rows = []
    for key, value in iter_hashmap(tree, root, _KEY_BITS):
        cell = value.load_ref()
        rows.append(
            (mc_seqno, utime, sign_int32(key), tree.hash(cell), serialize_boc(tree, [cell]))
        )
    return rows


def find_version(tree: CellTree, root: int) -> int:
    """Return the global version of a configuration; 0 without ConfigParam 8, as in the node."""
    param = dict(iter_hashmap(tree, root, _KEY_BITS)).get(VERSION_PARAM)
    return 0 if param is None else read_version(tree, param.load_ref())


def read_version(tree: CellTree, cell: int) -> int:
    """Read ConfigParam 8: capabilities#c4 version:uint32 capabilities:uint64."""
    param = tree.slice(cell)
    check_tag(param, 8, _VERSION_TAG, "ConfigParam 8")
    return param.load_uint(32)


def read_mark(tree: CellTree, extra: McExtra | None = None) -> KeyMark:
    """Read which configuration applies to a masterchain block, and which it introduces."""
    info, _ = read_own_info(tree, read_parts(tree).info)
    root = (extra or read_mc_extra(tree)).config
    version = None if root is None else find_version(tree, root)
    return KeyMark(info["prev_key_block_seqno"], version)


def find_zero_version(data: bytes) -> int | None:
    """Return the global version of a zero state; None if it has no configuration."""
    tree = parse_boc(data)
    root = read_config(tree, read_state(tree, tree.roots[0]))
    return None if root is None else find_version(tree, root)


def find_zero_states(tree: CellTree) -> list[BlockId]:
    """Return the ids of the workchains' zero states that the masterchain's zero state names.

    TL-B: workchain#a6, workchain_v2#a7.
    """
    root = read_config(tree, read_state(tree, tree.roots[0]))
    if root is None:
        raise DecodeError("the state has no configuration: it is not the masterchain's")
    params = {key: value.load_ref() for key, value in iter_hashmap(tree, root, _KEY_BITS)}
    found: list[BlockId] = []
    if _WORKCHAINS not in params:
        return found
    workchains = tree.slice(params[_WORKCHAINS]).load_maybe_ref()
    if workchains is None:
        return found
    for key, descr in iter_hashmap(tree, workchains, _KEY_BITS):
        tag = descr.load_uint(8)
        if tag not in _WORKCHAIN_TAGS:
            raise DecodeError(f"the workchain has the unknown form {tag:02x}")
        descr.skip(_BITS_BEFORE_ZERO_STATE)
        hashes = descr.load_bytes(32), descr.load_bytes(32)
        found.append(BlockId(sign_int32(key), _WHOLE_SHARD, 0, *hashes))
    return found
