"""Masterchain blocks made over: the same content under other hashes, as another chain has it.

What a header says of the validators is changed, and the reference to the block before. All else
stays: shard blocks, configuration, state updates.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from ingest.block.header import read_header
from ingest.cell.boc import parse_boc
from ingest.cell.build import CellBuilder
from ingest.cell.writer import serialize_boc

if TYPE_CHECKING:
    from ingest.cell.tree import CellTree
    from ingest.source import BlockId, McBundle, RawBlock

VALIDATORS_AT, VALIDATORS_BITS = 408, 32
"""Where ``gen_validator_list_hash_short`` stands in a block's info (block.tlb: block_info)."""

REFERENCE_BITS = 64 + 32 + 256 + 256
"""``ext_blk_ref$_ end_lt:uint64 seq_no:uint32 root_hash:bits256 file_hash:bits256``."""


def fork(bundles: list[McBundle], after: int, salt: int) -> list[McBundle]:
    """Return another chain that parts from this one after masterchain block ``after``."""
    made = bundles[:after]
    for bundle in bundles[after:]:
        before = made[-1].blocks[0].id if made else None
        first = _make_over(bundle.blocks[0], before, salt)
        made.append(msgspec.structs.replace(bundle, blocks=(first, *bundle.blocks[1:])))
    return made


def _make_over(block: RawBlock, before: BlockId | None, salt: int) -> RawBlock:
    tree = parse_boc(block.data)
    root = tree.roots[0]
    info, *others = tree.refs(root)
    previous, *vertical = tree.refs(info)
    if before is not None:
        previous = _refer(tree, previous, before)
    value, bits = _split(tree, info)
    value ^= salt << (bits - VALIDATORS_AT - VALIDATORS_BITS)
    made = _end(tree, value, bits, [previous, *vertical])
    data = serialize_boc(tree, [_end(tree, *_split(tree, root), [made, *others])])
    found = parse_boc(data)
    assert read_header(found).seqno == block.id.seqno
    changed = msgspec.structs.replace(
        block.id, root_hash=found.hash(found.roots[0]), file_hash=hashlib.sha256(data).digest()
    )
    return msgspec.structs.replace(block, id=changed, data=data, proof=None, mc_extra=None)


def _refer(tree: CellTree, cell: int, before: BlockId) -> int:
    value, bits = _split(tree, cell)
    assert bits == REFERENCE_BITS
    hashes = int.from_bytes(before.root_hash + before.file_hash, "big")
    return _end(tree, value >> 512 << 512 | hashes, bits, [])


def _split(tree: CellTree, cell: int) -> tuple[int, int]:
    """Return the bits of a cell as a number, and how many there are."""
    bits = tree.bit_length(cell)
    return tree.slice(cell).load_uint(bits), bits


def _end(tree: CellTree, value: int, bits: int, kids: list[int]) -> int:
    builder = CellBuilder(tree).store_uint(value, bits)
    for kid in kids:
        builder.store_ref(kid)
    return builder.end()
