"""A node's proof of a block: its signatures, and Merkle proofs cut from it.

TL-B: block_proof#c3 proof_for:BlockIdExt root:^Cell signatures:(Maybe ^BlockSignatures),
block_signatures#11 validator_info:ValidatorBaseInfo pure_signatures:BlockSignaturesPure,
block_signatures_pure#_ sig_count:uint32 sig_weight:uint64 signatures:(HashmapE 16
CryptoSignaturePair), sign_pair$_ node_id_short:bits256 sign:CryptoSignature, ed25519_signature#5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft_cell
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.exotic import PRUNED
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

_PROOF_TAG, _SIGNATURES_TAG, _ED25519_TAG = 0xC3, 0x11, 0x5
_BLOCK_ID_BITS = 104 + 32 + 256 + 256  # BlockIdExt: ShardIdent, seq_no, root_hash, file_hash
_VALIDATOR_INFO_BITS = 64
_COUNT_BITS, _WEIGHT_BITS, _KEY_BITS = 32, 64, 16
_MERKLE_BITS = 280
_SHARD_HASHES_BIT = 17  # behind the tag and key_block of McBlockExtra
_LEVEL_ONE = 1


class Signature(msgspec.Struct, frozen=True):
    """What one validator signed: short id of its key, and R and s of Ed25519."""

    node_id_short: bytes
    signature: bytes


def read_signatures(proof: bytes) -> list[Signature]:
    """Return the signatures under a masterchain block, in the order of its validators.

    Raises:
        DecodeError: the proof has none, or some of another form.
        BocError: it is no bag of cells, or a cell ends too early.
    """
    tree = parse_boc(proof)
    start = _open_proof(tree)
    start.load_ref()
    cell = start.load_maybe_ref()
    if cell is None:
        raise DecodeError("the proof of the block holds no signatures")
    signatures = tree.slice(cell)
    tag = signatures.load_uint(8)
    if tag != _SIGNATURES_TAG:
        raise DecodeError(f"the signatures of the block are of the unknown form {tag:02x}")
    signatures.skip(_VALIDATOR_INFO_BITS + _COUNT_BITS + _WEIGHT_BITS)
    root = signatures.load_maybe_ref()
    if root is None:
        return []
    return [_read_pair(pair) for _index, pair in iter_hashmap(tree, root, _KEY_BITS)]


def _read_pair(pair: CellSlice) -> Signature:
    node_id_short = pair.load_bytes(32)
    if pair.load_uint(4) != _ED25519_TAG:
        raise DecodeError("a signature is none of Ed25519")
    return Signature(node_id_short, pair.load_bytes(64))


def prove_header(proof: bytes) -> bytes:
    """Return the Merkle proof of a block's header, which names the blocks before it."""
    tree = parse_boc(proof)
    return serialize_boc(tree, [_open_proof(tree).load_ref()])


def prove_shards(proof: bytes, mc_extra: bytes) -> bytes:
    """Return the Merkle proof of the shard tops that a masterchain block names.

    It is the node's proof of the header, in which McBlockExtra stands in the place where that
    proof has only its hash; of it all but ShardHashes is left out.

    Raises:
        DecodeError: the two do not belong to one masterchain block.
        BocError: one is no bag of cells, or of another form.
    """
    source, target = parse_boc(proof), CellTree()
    merkle = _open_proof(source).load_ref()
    (block,) = source.refs(merkle)
    info, value_flow, state_update, extra = source.refs(block)
    custom = _cut_shards(target, parse_boc(mc_extra))
    kept = [graft_cell(target, source, kid) for kid in source.refs(extra)[:-1]]
    new_extra = append_cell(target, *source.bits(extra), (*kept, custom))
    kids = [graft_cell(target, source, kid) for kid in (info, value_flow, state_update)]
    new_block = append_cell(target, *source.bits(block), (*kids, new_extra))
    if target.hash(new_block, 0) != source.hash(block, 0):
        raise DecodeError("the proof of the block and its McBlockExtra do not belong together")
    data = int.from_bytes(source.payload(merkle), "big")
    root = append_cell(target, data, _MERKLE_BITS, (new_block,), exotic=True)
    return serialize_boc(target, [root])


def _cut_shards(target: CellTree, source: CellTree) -> int:
    """Append McBlockExtra with everything but ShardHashes replaced by its hash."""
    root = source.roots[0]
    value, bits = source.bits(root)
    kids = source.refs(root)
    has_shards = value >> (bits - 1 - _SHARD_HASHES_BIT) & 1
    kept = [graft_cell(target, source, kids[0])] if has_shards else []
    pruned = [_prune(target, source, kid) for kid in kids[len(kept) :]]
    return append_cell(target, value, bits, (*kept, *pruned))


def _prune(target: CellTree, source: CellTree, cell: int) -> int:
    """Append the pruned branch that stands for an ordinary cell."""
    depth = source.depth(cell).to_bytes(2, "big")
    data = bytes((PRUNED, _LEVEL_ONE)) + source.hash(cell) + depth
    return append_cell(target, int.from_bytes(data, "big"), len(data) * 8, (), exotic=True)


def _open_proof(tree: CellTree) -> CellSlice:
    """Return a reader of BlockProof behind ``proof_for``."""
    start = tree.slice(tree.roots[0])
    if start.load_uint(8) != _PROOF_TAG:
        raise DecodeError("the bag is no proof of a block")
    start.skip(_BLOCK_ID_BITS)
    return start
