"""Verifies proofs of blocks and the signatures in them, and cuts Merkle proofs from them.

TL-B: block_proof#c3 proof_for:BlockIdExt root:^Cell signatures:(Maybe ^BlockSignatures),
block_signatures#11 validator_info:ValidatorBaseInfo pure_signatures:BlockSignaturesPure,
block_signatures_pure#_ sig_count:uint32 sig_weight:uint64 signatures:(HashmapE 16
CryptoSignaturePair), sign_pair$_ node_id_short:bits256 sign:CryptoSignature, ed25519_signature#5;
block_signatures_simplex#12 … session_id:bits256 slot:uint32 candidate_data:^Cell, whose data are a
snake of cells with the boxed TL value consensus.CandidateHashData; a constructor's number is the
CRC-32 of its line in the schema. validators#11, validators_ext#12 (config param 34, or 35 if there
are temporary ones), validator#53, validator_addr#73, ed25519_pubkey#8e81278a. The signed bytes are
the TL object ton.blockId with both hashes, or a vote of Simplex consensus. Key blocks name the
validators of the blocks after them.
"""

import binascii
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import msgspec
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.header import (
    check_tag,
    make_shard,
    read_mc_extra,
    read_own_info,
    read_parts,
)
from tonlake.ingest.decode.block.state import read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft_cell
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap, iter_hashmap_slice
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, PRUNED, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, DecodeError


def _number(line: str) -> bytes:
    return binascii.crc32(line.encode("ascii")).to_bytes(4, "little")


_ORDINARY = _number(
    "consensus.candidateHashDataOrdinary block:tonNode.blockIdExt collated_file_hash:int256 "
    "parent:consensus.CandidateParent = consensus.CandidateHashData"
)
_EMPTY = _number(
    "consensus.candidateHashDataEmpty block:tonNode.blockIdExt parent:consensus.candidateId "
    "= consensus.CandidateHashData"
)
_CANDIDATE_ID = _number("consensus.candidateId slot:int hash:int256 = consensus.CandidateId")
_PARENT = _number("consensus.candidateParent id:consensus.CandidateId = consensus.CandidateParent")
_NO_PARENT = _number("consensus.candidateWithoutParents = consensus.CandidateParent")
_FINALIZE = _number(
    "consensus.simplex.finalizeVote id:consensus.CandidateId = consensus.simplex.UnsignedVote"
)
_DATA_TO_SIGN = _number("consensus.dataToSign session_id:int256 data:bytes = consensus.DataToSign")
_BLOCK_ID = Struct("<iqi32s32s")
_CANDIDATE_ID_BYTES, _HASH_BYTES, _TAG_BYTES = 36, 32, 4
_MAX_BYTES = 4096
"""Upper bound of a candidate's description, which has 160 bytes at most today."""


class SimplexVote(msgspec.Struct, frozen=True):
    """What validators voted to finalize: a boxed TL consensus.CandidateHashData in a slot."""

    session_id: bytes
    slot: int
    candidate: bytes

    def check(self, target: BlockId) -> None:
        """Verify that the candidate is a block."""
        found = read_candidate_block(self.candidate)
        if found != target:
            raise DecodeError(f"the signatures are of another block, {found}")

    def message(self) -> bytes:
        """Return the signed bytes: consensus.dataToSign of a finalizeVote."""
        slot = self.slot.to_bytes(4, "little")
        candidate_id = _CANDIDATE_ID + slot + hashlib.sha256(self.candidate).digest()
        vote = _FINALIZE + candidate_id
        body = bytes((len(vote),)) + vote  # TL bytes: the length, the data, zeros up to 4 bytes
        return _DATA_TO_SIGN + self.session_id + body + bytes(-len(body) % 4)


def read_candidate_block(candidate: bytes) -> BlockId:
    """Return the block that a candidate's description names."""
    tag, rest = candidate[:_TAG_BYTES], candidate[_TAG_BYTES + _BLOCK_ID.size :]
    if tag == _ORDINARY:
        parent = rest[_HASH_BYTES:]
        is_whole = parent == _NO_PARENT or (
            parent[: 2 * _TAG_BYTES] == _PARENT + _CANDIDATE_ID
            and len(parent) == 2 * _TAG_BYTES + _CANDIDATE_ID_BYTES
        )
    else:
        is_whole = tag == _EMPTY and len(rest) == _CANDIDATE_ID_BYTES
    if not is_whole:
        raise DecodeError("the candidate of the signatures has an unknown form")
    return BlockId(*_BLOCK_ID.unpack_from(candidate, _TAG_BYTES))


def read_snake(tree: CellTree, cell: int) -> bytes:
    """Return the bytes of a chain of cells, the next one in the only reference."""
    data = bytearray()
    while True:
        start = tree.slice(cell)
        if start.bits_left % 8 or start.refs_left > 1:
            raise DecodeError("the candidate of the signatures is not a chain of bytes")
        data += start.load_bytes(start.bits_left // 8)
        if len(data) > _MAX_BYTES:
            raise DecodeError(f"the candidate of the signatures has over {_MAX_BYTES:,} bytes")
        if not start.refs_left:
            return bytes(data)
        cell = start.load_ref()


_PROOF_TAG, _SIGNATURES_TAG, _SIMPLEX_TAG, _ED25519_TAG = 0xC3, 0x11, 0x12, 0x5
_SHARD_MASK = (1 << 64) - 1
_PROOF_HEAD, _SET_HEAD = Struct(">BBiQI32s32s"), Struct(">BIIIQ")
"""A BlockProof up to its root, and BlockSignatures up to the first signature."""
_KEY_BITS = 16
SHAPES_KEPT = 64
_PAIR_BITS = 256 + 4 + 512
_MERKLE_BITS = 280
_SHARD_HASHES_BIT = 17  # after the tag and key_block of McBlockExtra
_LEVEL_ONE = 1


class Signature(NamedTuple):
    """The signature of one validator: short id of its key, and R and s of Ed25519."""

    node_id_short: bytes
    signature: bytes


class SignatureSet(msgspec.Struct, frozen=True):
    """The signatures of a masterchain block, the hash of its validator set, and their weight."""

    validator_list_hash_short: int
    catchain_seqno: int
    weight: int
    signatures: list[Signature]
    vote: SimplexVote | None = None


def check_proof(proof: bytes, block_id: BlockId) -> SignatureSet | None:
    """Verify that a proof belongs to a block; return its signatures, not verified yet.

    Every bit is checked: the id, the Merkle proof (root hash of the block) and the form of the
    signatures. None if it has no signatures. Raises DecodeError if it belongs to another block, or
    its signatures are malformed; BocError if it is not a bag of cells, or a cell ends too early.
    """
    found = native.read_proof(proof, block_id)
    if found is None:
        return check_in_python(proof, block_id)
    if not found:
        return None
    list_hash, catchain_seqno, weight, pairs, nodes, vote = found
    simplex = None if vote is None else SimplexVote(*vote)
    signatures = [Signature(*pair) for pair in pairs]
    signed = SignatureSet(list_hash, catchain_seqno, weight, signatures, simplex)
    if nodes != _shape_signatures(len(pairs)) or len({one for one, _ in pairs}) < len(pairs):
        return check_in_python(proof, block_id)  # which raises the error
    if simplex is not None:
        simplex.check(block_id)
    return signed


def check_in_python(proof: bytes, block_id: BlockId) -> SignatureSet | None:
    """Implement ``check_proof`` in Python, for proofs that the extension declines."""
    tree = parse_boc(proof)
    start = tree.slice(tree.roots[0])
    found = _read_block_id(start)
    if found != block_id:
        raise DecodeError(f"it is the proof of another block, {found}")
    is_hashed = native.hash_root(proof) is not None
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
    """Return the signatures of a masterchain block, in the order of its validators."""
    tree = parse_boc(proof)
    start = _open_proof(tree)
    start.load_ref()
    cell = start.load_maybe_ref()
    if cell is None:
        raise DecodeError("the proof of the block has no signatures")
    return _read_signature_set(tree, cell)


def _read_signature_set(tree: CellTree, cell: int) -> SignatureSet:
    start = tree.slice(cell)
    head = _SET_HEAD.unpack(start.load_bytes(_SET_HEAD.size))
    tag, list_hash, catchain_seqno, count, weight = head
    if tag not in (_SIGNATURES_TAG, _SIMPLEX_TAG):
        raise DecodeError(f"the signatures of the block have the unknown form {tag:02x}")
    root = start.load_maybe_ref()
    vote = _read_vote(tree, start) if tag == _SIMPLEX_TAG else None
    _expect_end(start, "the set of signatures")
    pairs = [] if root is None else list(iter_hashmap(tree, root, _KEY_BITS))
    if len(pairs) != count or any(at != index for at, (index, _pair) in enumerate(pairs)):
        raise DecodeError(f"the block has {len(pairs)} signatures, but declares {count}")
    if root is not None and _list_parts(tree, root, count) != _shape_signatures(count):
        raise DecodeError("the signatures of the block are malformed")
    signatures = []
    for _index, pair in pairs:
        node_id_short = pair.load_bytes(32)
        if pair.load_uint(4) != _ED25519_TAG:
            raise DecodeError("a signature is not of type Ed25519")
        signatures.append(Signature(node_id_short, pair.load_bytes(64)))
    if len({one.node_id_short for one in signatures}) < count:
        raise DecodeError("a validator signed the block twice")
    return SignatureSet(list_hash, catchain_seqno, weight, signatures, vote)


def _read_vote(tree: CellTree, start: CellSlice) -> SimplexVote:
    session_id, slot = start.load_bytes(32), start.load_uint(32)
    return SimplexVote(session_id, slot, read_snake(tree, start.load_ref()))


@lru_cache(maxsize=SHAPES_KEPT)
def _shape_signatures(count: int) -> list[tuple[int, int, int]]:
    """Return the parts of a dictionary of signatures, as the node encodes it."""
    tree = CellTree()
    pairs = [(index, 0) for index in range(count)]
    root = build_hashmap(
        tree, pairs, _KEY_BITS, lambda node, pair: node.store_uint(pair, _PAIR_BITS)
    )
    return _list_parts(tree, root, count)


def _list_parts(tree: CellTree, root: int, count: int) -> list[tuple[int, int, int]]:
    """Return number of references, bits, and label of each node; no hash covers signatures."""
    parts: list[tuple[int, int, int]] = []
    todo = [root]
    while todo and len(parts) < 2 * count:  # one more than there should be
        cell = todo.pop()
        links, (value, bits) = tree.links[cell], tree.bits(cell)
        parts.append((len(links), bits, value if links else value >> _PAIR_BITS))
        todo += links
    return parts


def _check_merkle(tree: CellTree, cell: int, root_hash: bytes, *, is_hashed: bool) -> int:
    """Return the block in a Merkle proof, which must prove ``root_hash``."""
    if tree.kind(cell) != MERKLE_PROOF:
        raise DecodeError("the proof contains no Merkle proof")
    (block,) = tree.links[cell]
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
    """Return the Merkle proof of the shard tops: that of the header, with ShardHashes inserted."""
    source, target = parse_boc(proof), CellTree()
    merkle = _open_proof(source).load_ref()
    new_block = _join(target, source, merkle, _cut_shards(target, parse_boc(mc_extra)))
    data = int.from_bytes(source.payload(merkle), "big")
    root = append_cell(target, data, _MERKLE_BITS, (new_block,), exotic=True)
    return serialize_boc(target, [root])


def open_header(proof: bytes, mc_extra: bytes | None = None) -> CellTree:
    """Return a tree whose first root is the block in a node's proof, with McBlockExtra if given."""
    source, target = parse_boc(proof), CellTree()
    merkle = _open_proof(source).load_ref()
    if mc_extra is None:
        source.roots = list(source.links[merkle])
        return source
    extra = parse_boc(mc_extra)
    custom = graft_cell(target, extra, extra.roots[0])
    target.roots = [_join(target, source, merkle, custom)]
    return target


def _join(target: CellTree, source: CellTree, merkle: int, custom: int) -> int:
    """Append the block of a Merkle proof, with McBlockExtra inserted."""
    (block,) = source.links[merkle]
    info, value_flow, state_update, extra = source.links[block]
    kept = [graft_cell(target, source, child) for child in source.links[extra][:-1]]
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
    children = source.links[root]
    has_shards = value >> (bits - 1 - _SHARD_HASHES_BIT) & 1
    kept = [graft_cell(target, source, children[0])] if has_shards else []
    pruned = []
    for child in children[len(kept) :]:
        depth = source.depth(child).to_bytes(2, "big")
        data = bytes((PRUNED, _LEVEL_ONE)) + source.hash(child) + depth
        branch = int.from_bytes(data, "big"), len(data) * 8
        pruned.append(append_cell(target, *branch, (), exotic=True))
    return append_cell(target, value, bits, (*kept, *pruned))


def _open_proof(tree: CellTree) -> CellSlice:
    start = tree.slice(tree.roots[0])
    _read_block_id(start)
    return start


def _read_block_id(start: CellSlice) -> BlockId:
    """Read the tag and ``proof_for`` of a BlockProof."""
    tag, head, workchain, prefix, *named = _PROOF_HEAD.unpack(start.load_bytes(_PROOF_HEAD.size))
    if tag != _PROOF_TAG:
        raise DecodeError("the bag is not a proof of a block")
    shard = make_shard(head, prefix)
    if prefix != shard & shard - 1 & _SHARD_MASK:
        raise DecodeError("the shard of the proof has bits after its prefix")
    return BlockId(workchain, shard, *named)


SIGNED_TAG, KEY_TAG = bytes.fromhex("706e0bc5"), bytes.fromhex("c6b41348")
_TEMPORARY, _CURRENT = 35, 34
_PARAM_BITS, _INDEX_BITS = 32, 16
_VALIDATORS, _VALIDATORS_EXT = 0x11, 0x12
_VALIDATOR_TAGS, _PUBLIC_KEY_TAG = (0x53, 0x73), 0x8E81278A


class Validator(NamedTuple):
    """A validator of the masterchain: its public key and its weight."""

    key: bytes
    weight: int


def check_signatures(
    target: BlockId,
    validators: Iterable[Validator],
    signatures: Iterable[tuple[bytes, bytes]],
    vote: SimplexVote | None = None,
) -> int:
    """Verify that more than two thirds of the validators signed a block; return their weight.

    Raises DecodeError if the signatures prove nothing.
    ``vote`` is what they signed in Simplex consensus; without it, they signed the block's id.
    """
    by_id = {hashlib.sha256(KEY_TAG + one.key).digest(): one for one in validators}
    total = sum(one.weight for one in by_id.values())
    message = SIGNED_TAG + target.root_hash + target.file_hash
    if vote is not None:
        vote.check(target)
        message = vote.message()
    weight = 0
    for node_id, signature in signatures:
        validator = by_id.pop(node_id, None)
        if validator is None:
            raise DecodeError(f"{target} is signed by {node_id.hex()}, not one of its validators")
        try:
            VerifyKey(validator.key).verify(message, signature)
        except (BadSignatureError, ValueError, TypeError) as error:
            raise DecodeError(f"a signature of {target} is wrong") from error
        weight += validator.weight
    if weight * 3 <= total * 2:
        raise DecodeError(f"{target} is signed by {weight} of {total}, not by two thirds")
    return weight


def check_signature_set(
    target: BlockId, validators: Sequence[Validator], found: SignatureSet
) -> None:
    """Verify the signatures in the proof of a block, and the weight that it declares."""
    weight = check_signatures(target, validators, found.signatures, found.vote)
    if weight != found.weight:
        raise DecodeError(
            f"the signatures of {target} have weight {weight}, but declare {found.weight}"
        )


def read_validators(tree: CellTree, known: BlockId) -> list[Validator]:
    """Return the masterchain's validators according to a key block or the zero state."""
    if known.seqno:
        config = read_mc_extra(tree).config
    else:
        config = read_config(tree, read_state(tree, tree.roots[0]))
    if config is None:
        raise DecodeError("it has no configuration")
    params = dict(iter_hashmap(tree, config, _PARAM_BITS, skip_pruned=True))
    value = params.get(_TEMPORARY) or params.get(_CURRENT)
    if value is None:
        raise DecodeError("its configuration has no validators")
    start = tree.slice(value.load_ref())
    tag = start.load_uint(8)
    if tag not in (_VALIDATORS, _VALIDATORS_EXT):
        raise DecodeError(f"validators have the unknown form {tag:02x}")
    start.skip(32 + 32 + 16)  # utime_since, utime_until, total
    main = start.load_uint(16)
    if tag == _VALIDATORS:
        listed = iter_hashmap_slice(start, _INDEX_BITS)
    else:
        start.skip(64)  # total_weight
        root = start.load_maybe_ref()
        listed = iter(()) if root is None else iter_hashmap(tree, root, _INDEX_BITS)
    # Shuffling changes the order of validators, not which ones they are.
    return [_read_validator(one) for index, one in listed if index < main]


def _read_validator(cell: CellSlice) -> Validator:
    tag = cell.load_uint(8)
    if tag not in _VALIDATOR_TAGS:
        raise DecodeError(f"a validator has the unknown form {tag:02x}")
    check_tag(cell, 32, _PUBLIC_KEY_TAG, "public key")
    return Validator(cell.load_bytes(32), cell.load_uint(64))


KEYS_KEPT = 4


class Signers:
    """Validators by key block, each read once; verifies their signatures."""

    def __init__(self, read_key_block: Callable[[int], RawBlock | None]) -> None:
        self._read_key_block = read_key_block
        self._find = lru_cache(KEYS_KEPT)(self._read)

    def forget(self) -> None:
        """Read key blocks again, for example after a roll-back."""
        self._find.cache_clear()

    def check(self, block: RawBlock, key_seqno: int) -> bool:
        """Verify the proof of a masterchain block, if any; return whether signatures were verified.

        They must be from the validators named by key block ``key_seqno``; if that block is missing,
        only the form of the proof is checked.
        """
        if block.proof is None:
            return False
        found = check_proof(block.proof, block.id)
        validators = self._find(key_seqno)
        if found is None or validators is None:
            return False
        check_signature_set(block.id, validators, found)
        return True

    def _read(self, key_seqno: int) -> list[Validator] | None:
        block = self._read_key_block(key_seqno)
        if block is None:
            return None
        try:
            return read_validators(parse_boc(block.data, check_crc=False), block.id)
        except (BocError, DecodeError):
            return None  # reported when that block is read
