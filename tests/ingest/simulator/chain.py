"""Rewrites masterchain blocks: the same content under other hashes, as on another chain.

The validator fields of the header and the reference to the previous block change. Shard blocks,
configuration and state updates stay.
"""

import hashlib

import msgspec

from tests.made.chain import WHOLE_SHARD, Chain, Moulds
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc

SEQNO_AT, VALIDATORS_AT, FIELD_BITS = 80, 408, 32
"""Where ``seq_no`` and ``gen_validator_list_hash_short`` are in block_info (block.tlb)."""

TARGET_BITS = 32 + 256 + 256
REFERENCE_BITS = 64 + TARGET_BITS
"""``ext_blk_ref$_ end_lt:uint64 seq_no:uint32 root_hash:bits256 file_hash:bits256``."""


MIDDLING, VARIED = "the middling one", "of all sizes"


class DemoMoulds(Moulds):
    """Takes shard blocks of the demo node: a medium-sized one, or some of all sizes."""

    def shards(self, name: str) -> list[bytes]:
        """Return those that are ``MIDDLING`` or ``VARIED``."""
        whole = [raw for raw in self._demo if raw.id.shard == WHOLE_SHARD and raw.id.workchain == 0]
        plain = [
            raw.data
            for raw in whole
            if not read_header(parse_boc(raw.data, check_crc=False)).after_merge
        ]
        plain.sort(key=len)
        return [plain[len(plain) // 2]] if name == MIDDLING else plain[:: len(plain) // 8]


class Supply:
    """The blocks of a node's chain, or generated ones; after ``part`` those of another chain."""

    def __init__(self, genuine: list[McBundle], grown: Chain | None) -> None:
        """Take the existing blocks, and the generator of further ones."""
        self._plain, self._grown, self._salt = genuine, grown, 0

    def has(self, mc_seqno: int) -> bool:
        return self._grown is not None or mc_seqno <= len(self._plain)

    def part(self, salt: int) -> None:
        """Continue as another chain, a new one for each salt."""
        self._salt = salt

    def make(self, mc_seqno: int, before: McBundle | None) -> McBundle:
        """Return the block with a seqno that follows ``before``."""
        while self._grown is not None and len(self._plain) < mc_seqno:
            self._plain.append(self._grown.grow())
        plain = self._plain[mc_seqno - 1]
        if not self._salt:
            return plain
        return make_over(plain, None if before is None else before.blocks[0].id, self._salt)


def fork(bundles: list[McBundle], after: int, salt: int) -> list[McBundle]:
    """Return another chain that branches off after masterchain block ``after``."""
    made = bundles[:after]
    for bundle in bundles[after:]:
        made.append(make_over(bundle, made[-1].blocks[0].id if made else None, salt))
    return made


def make_over(bundle: McBundle, before: BlockId | None, salt: int) -> McBundle:
    """Return the same masterchain block on another chain, following ``before``."""
    first = _make_over(bundle.blocks[0], [before] if before else [], VALIDATORS_AT, salt)
    return msgspec.structs.replace(bundle, blocks=(first, *bundle.blocks[1:]))


def displace(block: RawBlock, master: BlockId, before: BlockId) -> RawBlock:
    """Return a shard block with the content of another one, after ``before``."""
    change = block.id.seqno ^ (before.seqno + 1)
    return _make_over(block, [master, before], SEQNO_AT, change)


def _make_over(block: RawBlock, targets: list[BlockId], at: int, change: int) -> RawBlock:
    """Return a block whose first references are to ``targets``, with another field ``at``."""
    tree = parse_boc(block.data, check_crc=False)
    root = tree.roots[0]
    info, *others = tree.links[root]
    kept = tree.links[info]
    made = [_refer(tree, *pair) for pair in zip(kept, targets, strict=False)]
    value, bits = _split(tree, info)
    value ^= change << (bits - at - FIELD_BITS)
    made = [_end(tree, value, bits, [*made, *kept[len(made) :]]), *others]
    data = serialize_boc(tree, [_end(tree, *_split(tree, root), made)])
    found = parse_boc(data)
    root_hash, file_hash = found.hash(found.roots[0]), hashlib.sha256(data).digest()
    seqno = read_header(found).seqno
    changed = BlockId(block.id.workchain, block.id.shard, seqno, root_hash, file_hash)
    return msgspec.structs.replace(block, id=changed, data=data, proof=None, mc_extra=None)


def _refer(tree: CellTree, cell: int, before: BlockId) -> int:
    value, bits = _split(tree, cell)
    assert bits == REFERENCE_BITS
    target = int.from_bytes(before.root_hash + before.file_hash, "big") | before.seqno << 512
    return _end(tree, value >> TARGET_BITS << TARGET_BITS | target, bits, [])


def _split(tree: CellTree, cell: int) -> tuple[int, int]:
    """Return the bits of a cell as a number, and their count."""
    bits = tree.bit_length(cell)
    return tree.slice(cell).load_uint(bits), bits


def _end(tree: CellTree, value: int, bits: int, kids: list[int]) -> int:
    builder = CellBuilder(tree).store_uint(value, bits)
    for kid in kids:
        builder.store_ref(kid)
    return builder.end()
