"""Verifies a node's proof of a block, reads its signatures, and cuts Merkle proofs from it.

TL-B: block_proof#c3 proof_for:BlockIdExt root:^Cell signatures:(Maybe ^BlockSignatures),
block_signatures#11 validator_info:ValidatorBaseInfo pure_signatures:BlockSignaturesPure,
block_signatures_pure#_ sig_count:uint32 sig_weight:uint64 signatures:(HashmapE 16
CryptoSignaturePair), sign_pair$_ node_id_short:bits256 sign:CryptoSignature, ed25519_signature#5;
block_signatures_simplex#12, see ``simplex``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.header import read_own_info, read_parts, read_shard_ident
from tonlake.ingest.decode.block.simplex import SimplexVote, read_snake
from tonlake.ingest.decode.cell.boc import MERKLE_PROOF, parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft_cell
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap
from tonlake.ingest.decode.cell.exotic import PRUNED
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.native import hash_root
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

_PROOF_TAG, _SIGNATURES_TAG, _SIMPLEX_TAG, _ED25519_TAG = 0xC3, 0x11, 0x12, 0x5
_SHARD_IDENT_BITS, _SHARD_MASK = 104, (1 << 64) - 1
_KEY_BITS = 16
_PAIR_BITS = 256 + 4 + 512
_MERKLE_BITS = 280
_SHARD_HASHES_BIT = 17  # after the tag and key_block of McBlockExtra
_LEVEL_ONE = 1


class Signature(msgspec.Struct, frozen=True):
    """The signature of one validator: short id of its key, and R and s of Ed25519."""

    node_id_short: bytes
    signature: bytes


class SignatureSet(msgspec.Struct, frozen=True):
    """The signatures of a masterchain block, the hash of its validator set, and their weight.

    ``vote`` is what was signed in Simplex consensus; earlier, the id of the block was.
    """

    validator_list_hash_short: int
    catchain_seqno: int
    weight: int
    signatures: list[Signature]
    vote: SimplexVote | None = None


def check_proof(proof: bytes, block_id: BlockId) -> SignatureSet | None:
    """Verify that a proof belongs to a block; return its signatures, not verified yet.

    Every bit is checked: the id, the Merkle proof (root hash of the block) and the form of the
    signatures. None if it has no signatures.

    Raises:
        DecodeError: it belongs to another block, or its signatures are malformed.
        BocError: it is not a bag of cells, or a cell ends too early.
    """
    tree = parse_boc(proof)
    start = tree.slice(tree.roots[0])
    found = _read_block_id(start)
    if found != block_id:
        raise DecodeError(f"it is the proof of another block, {found}")
    is_hashed = hash_root(proof) is not None
    block = _check_merkle(tree, start.load_ref(), block_id.root_hash, is_hashed=is_hashed)
    cell = start.load_maybe_ref()
    _expect_end(start, "the proof")
    if len(tree.roots) > 1:
        raise DecodeError("the bag of the proof has more than one root")
    if cell is None:
        return None
    found_set = _read_signature_set(tree, cell)
    if found_set.vote is not None:
        found_set.vote.check(block_id)
    tree.roots = [block]
    info, _rest = read_own_info(tree, read_parts(tree).info)
    own = info["validator_list_hash_short"] & 0xFFFFFFFF, info["gen_catchain_seqno"]
    if own != (found_set.validator_list_hash_short, found_set.catchain_seqno):
        raise DecodeError("the signatures belong to another validator set than the block's")
    return found_set


def read_signatures(proof: bytes) -> SignatureSet:
    """Return the signatures of a masterchain block, in the order of its validators.

    Raises:
        DecodeError: the proof has none, or has them in another form.
        BocError: it is not a bag of cells, or a cell ends too early.
    """
    tree = parse_boc(proof)
    start = _open_proof(tree)
    start.load_ref()
    cell = start.load_maybe_ref()
    if cell is None:
        raise DecodeError("the proof of the block has no signatures")
    return _read_signature_set(tree, cell)


def _read_signature_set(tree: CellTree, cell: int) -> SignatureSet:
    start = tree.slice(cell)
    tag = start.load_uint(8)
    if tag not in (_SIGNATURES_TAG, _SIMPLEX_TAG):
        raise DecodeError(f"the signatures of the block have the unknown form {tag:02x}")
    list_hash, catchain_seqno = start.load_uint(32), start.load_uint(32)
    count, weight, root = start.load_uint(32), start.load_uint(64), start.load_maybe_ref()
    vote = _read_vote(tree, start) if tag == _SIMPLEX_TAG else None
    _expect_end(start, "the set of signatures")
    pairs = [] if root is None else list(iter_hashmap(tree, root, _KEY_BITS))
    if len(pairs) != count or any(at != index for at, (index, _pair) in enumerate(pairs)):
        raise DecodeError(f"the block has {len(pairs)} signatures, but declares {count}")
    if root is not None:
        _check_form(tree, root, [pair.peek_uint(_PAIR_BITS) for _index, pair in pairs])
    signatures = [_read_pair(pair) for _index, pair in pairs]
    if len({one.node_id_short for one in signatures}) < count:
        raise DecodeError("a validator signed the block twice")
    return SignatureSet(list_hash, catchain_seqno, weight, signatures, vote)


def _read_vote(tree: CellTree, start: CellSlice) -> SimplexVote:
    session_id, slot = start.load_bytes(32), start.load_uint(32)
    return SimplexVote(session_id, slot, read_snake(tree, start.load_ref()))


def _check_form(tree: CellTree, root: int, pairs: list[int]) -> None:
    """Verify that a dictionary of signatures is encoded as in the node, since no hash covers it."""
    copy = CellTree()
    rebuilt = build_hashmap(
        copy,
        list(enumerate(pairs)),
        _KEY_BITS,
        lambda node, pair: node.store_uint(pair, _PAIR_BITS),
    )
    if copy.hash(rebuilt) != tree.hash(root):
        raise DecodeError("the signatures of the block are malformed")


def _read_pair(pair: CellSlice) -> Signature:
    node_id_short = pair.load_bytes(32)
    if pair.load_uint(4) != _ED25519_TAG:
        raise DecodeError("a signature is not of type Ed25519")
    return Signature(node_id_short, pair.load_bytes(64))


def _check_merkle(tree: CellTree, cell: int, root_hash: bytes, *, is_hashed: bool) -> int:
    """Return the block in a Merkle proof, which must prove ``root_hash``.

    ``is_hashed`` means that the hash and depth stored in the proof were verified.
    """
    if tree.kind(cell) != MERKLE_PROOF:
        raise DecodeError("the proof contains no Merkle proof")
    (block,) = tree.refs(cell)
    named = tree.payload(cell)[1:33]
    if named != root_hash:
        raise DecodeError(f"it proves the block {named.hex()}, not {root_hash.hex()}")
    if is_hashed:
        return block
    depth = tree.depth(block, 0).to_bytes(2, "big")
    if tree.payload(cell)[1:] != tree.hash(block, 0) + depth:
        raise DecodeError("the Merkle proof stores another hash or depth than it proves")
    return block


def _expect_end(start: CellSlice, what: str) -> None:
    if start.bits_left or start.refs_left:
        raise DecodeError(f"{what} continues past its end")


def prove_header(proof: bytes) -> bytes:
    """Return the Merkle proof of a block's header, which names the previous blocks."""
    tree = parse_boc(proof)
    return serialize_boc(tree, [_open_proof(tree).load_ref()])


def prove_shards(proof: bytes, mc_extra: bytes) -> bytes:
    """Return the Merkle proof of the shard tops that a masterchain block names.

    It is the node's proof of the header with McBlockExtra inserted, which is pruned there; of
    McBlockExtra only ShardHashes is kept.

    Raises:
        DecodeError: the arguments do not belong to the same masterchain block.
        BocError: one of them is not a bag of cells, or malformed.
    """
    source, target = parse_boc(proof), CellTree()
    merkle = _open_proof(source).load_ref()
    new_block = _join(target, source, merkle, _cut_shards(target, parse_boc(mc_extra)))
    data = int.from_bytes(source.payload(merkle), "big")
    root = append_cell(target, data, _MERKLE_BITS, (new_block,), exotic=True)
    return serialize_boc(target, [root])


def open_header(proof: bytes, mc_extra: bytes | None = None) -> CellTree:
    """Return a tree whose first root is the block in a node's proof, with McBlockExtra if given.

    Raises:
        DecodeError: the arguments do not belong to the same masterchain block.
        BocError: one of them is not a bag of cells, or malformed.
    """
    source, target = parse_boc(proof), CellTree()
    merkle = _open_proof(source).load_ref()
    if mc_extra is None:
        source.roots = [*source.refs(merkle)]
        return source
    extra = parse_boc(mc_extra)
    custom = graft_cell(target, extra, extra.roots[0])
    target.roots = [_join(target, source, merkle, custom)]
    return target


def _join(target: CellTree, source: CellTree, merkle: int, custom: int) -> int:
    """Append the block of a Merkle proof, with McBlockExtra inserted."""
    (block,) = source.refs(merkle)
    info, value_flow, state_update, extra = source.refs(block)
    kept = [graft_cell(target, source, child) for child in source.refs(extra)[:-1]]
    new_extra = append_cell(target, *source.bits(extra), (*kept, custom))
    children = [graft_cell(target, source, child) for child in (info, value_flow, state_update)]
    new_block = append_cell(target, *source.bits(block), (*children, new_extra))
    if target.hash(new_block, 0) != source.hash(block, 0):
        raise DecodeError("the proof of the block and its McBlockExtra do not belong together")
    return new_block


def _cut_shards(target: CellTree, source: CellTree) -> int:
    """Append McBlockExtra with everything but ShardHashes replaced by its hash."""
    root = source.roots[0]
    value, bits = source.bits(root)
    children = source.refs(root)
    has_shards = value >> (bits - 1 - _SHARD_HASHES_BIT) & 1
    kept = [graft_cell(target, source, children[0])] if has_shards else []
    pruned = [_prune(target, source, child) for child in children[len(kept) :]]
    return append_cell(target, value, bits, (*kept, *pruned))


def _prune(target: CellTree, source: CellTree, cell: int) -> int:
    """Append the pruned branch that replaces an ordinary cell."""
    depth = source.depth(cell).to_bytes(2, "big")
    data = bytes((PRUNED, _LEVEL_ONE)) + source.hash(cell) + depth
    return append_cell(target, int.from_bytes(data, "big"), len(data) * 8, (), exotic=True)


def _open_proof(tree: CellTree) -> CellSlice:
    """Return a slice of BlockProof after ``proof_for``."""
    start = tree.slice(tree.roots[0])
    _read_block_id(start)
    return start


def _read_block_id(start: CellSlice) -> BlockId:
    """Read the tag and ``proof_for`` of a BlockProof."""
    if start.load_uint(8) != _PROOF_TAG:
        raise DecodeError("the bag is not a proof of a block")
    prefix = start.peek_uint(_SHARD_IDENT_BITS) & _SHARD_MASK
    workchain, shard = read_shard_ident(start)
    if prefix != shard & shard - 1 & _SHARD_MASK:
        raise DecodeError("the shard of the proof has bits after its prefix")
    return BlockId(
        workchain, shard, start.load_uint(32), start.load_bytes(32), start.load_bytes(32)
    )
