"""Signatures of Simplex consensus: verified from the zero state; every damage is refused."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.header import read_own_info, read_parts
from tonlake.ingest.decode.block.proof import (
    ProofInvalid,
    Signers,
    SimplexVote,
    check_proof,
    check_signatures,
    read_candidate_block,
    read_signatures,
    read_validators,
    write_candidate,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.ingest.source.node.source import NodeSource, open_node

FLIPS = 200
HASHES = st.binary(min_size=32, max_size=32)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
BLOCKS = st.builds(BlockId, INT32, st.integers(-(1 << 63), (1 << 63) - 1), INT32, HASHES, HASHES)


@pytest.fixture(scope="module")
def node(newest_node: Path) -> Iterator[NodeSource]:
    with closing(open_node(newest_node, proofs=True)) as source:
        yield source


@pytest.fixture(scope="module")
def read_key_block(node: NodeSource) -> Callable[[int], RawBlock]:
    state = node.zero_states()[0]
    zero = RawBlock(BlockId(-1, -(1 << 63), 0, state.root_hash, state.file_hash), state.data)
    return lambda seqno: node.read_bundle(seqno).blocks[0] if seqno else zero


def find_key_seqno(block: RawBlock) -> int:
    tree = parse_boc(block.data)
    info, _rest = read_own_info(tree, read_parts(tree).info)
    return int(info["prev_key_block_seqno"])


def test_all_blocks_are_signed(node: NodeSource, read_key_block: Callable[[int], RawBlock]) -> None:
    signers = Signers(read_key_block)
    for seqno in range(node.first_mc_seqno(), node.last_mc_seqno() + 1):
        block = node.read_bundle(seqno).blocks[0]
        assert signers.check(block, find_key_seqno(block)), seqno


def test_votes_equal_the_lite_servers(node: NodeSource, shared: Path) -> None:
    expected = json.loads((shared / "node-2026" / "expected.json").read_text())["signatures"]
    for seqno, wanted in expected.items():
        proof = node.read_bundle(int(seqno)).blocks[0].proof
        assert proof is not None
        found = read_signatures(proof)
        assert found.vote is not None
        assert found.vote.session_id.hex() == wanted["session_id"]
        assert found.vote.slot == wanted["slot"]
        assert found.vote.candidate == write_candidate(wanted["candidate"])
        assert len(found.signatures) == wanted["n"]
        assert found.signatures[0].signature == base64.b64decode(wanted["sig0"])
        assert found.signatures[0].node_id_short.hex() == wanted["node0"]


def test_every_damaged_part_is_refused(
    node: NodeSource, read_key_block: Callable[[int], RawBlock]
) -> None:
    rng = random.Random(7)  # noqa: S311 - a seed, no secret
    for _ in range(FLIPS):
        block = node.read_bundle(rng.randrange(1, node.last_mc_seqno() + 1)).blocks[0]
        key_block = read_key_block(find_key_seqno(block))
        validators = read_validators(parse_boc(key_block.data), key_block.id)
        assert block.proof is not None
        found = read_signatures(block.proof)
        assert found.vote is not None
        vote, (one,) = found.vote, found.signatures
        pairs = [(one.node_id_short, one.signature)]
        check_signatures(block.id, validators, pairs, vote)
        part = rng.choice(("signature", "node", "slot", "candidate", "session"))
        if part == "slot":
            vote = msgspec.structs.replace(vote, slot=vote.slot ^ 1 << rng.randrange(32))
        elif part == "candidate":
            vote = msgspec.structs.replace(vote, candidate=flip(vote.candidate, rng))
        elif part == "session":
            vote = msgspec.structs.replace(vote, session_id=flip(vote.session_id, rng))
        elif part == "node":
            pairs = [(flip(one.node_id_short, rng), one.signature)]
        else:
            pairs = [(one.node_id_short, flip(one.signature, rng))]
        with pytest.raises(ProofInvalid):
            check_signatures(block.id, validators, pairs, vote)


def test_missing_repeated_and_foreign_signatures(
    node: NodeSource, read_key_block: Callable[[int], RawBlock]
) -> None:
    block, other = (node.read_bundle(seqno).blocks[0] for seqno in (50, 51))
    key_block = read_key_block(find_key_seqno(block))
    validators = read_validators(parse_boc(key_block.data), key_block.id)
    assert block.proof is not None
    assert other.proof is not None
    found, foreign = read_signatures(block.proof), read_signatures(other.proof)
    pairs = [(one.node_id_short, one.signature) for one in found.signatures]
    with pytest.raises(ProofInvalid, match="not by two thirds"):
        check_signatures(block.id, validators, [], found.vote)
    with pytest.raises(ProofInvalid, match="not one of its validators"):
        check_signatures(block.id, validators, pairs * 2, found.vote)
    with pytest.raises(ProofInvalid, match="another block"):
        check_signatures(block.id, validators, pairs, foreign.vote)
    with pytest.raises(ProofInvalid, match="is wrong"):
        check_signatures(block.id, validators, pairs)  # as if the id were signed


def test_every_bit_of_a_proof_is_verified(
    node: NodeSource, read_key_block: Callable[[int], RawBlock]
) -> None:
    signers = Signers(read_key_block)
    block = node.read_bundle(77).blocks[0]
    assert block.proof is not None
    key_seqno = find_key_seqno(block)
    for bit in range(len(block.proof) * 8):
        damaged = bytearray(block.proof)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises((BocError, DecodeError)):
            signers.check(msgspec.structs.replace(block, proof=bytes(damaged)), key_seqno)


def test_a_proof_without_a_candidate_is_refused(shared: Path) -> None:
    proof = (shared / "node-2026" / "simplex_proof.boc").read_bytes()
    found = read_signatures(proof)
    assert found.vote is not None
    with pytest.raises(DecodeError, match="unknown form"):
        read_candidate_block(found.vote.candidate)
    block = BlockId(-1, -(1 << 63), 1, bytes(32), bytes(32))
    with pytest.raises(DecodeError, match="another block"):
        check_proof(proof, block)


@given(BLOCKS, HASHES, st.none() | st.tuples(INT32, HASHES), st.booleans())
def test_candidates_return(
    block: BlockId,
    collated: bytes,
    parent: tuple[int, bytes] | None,
    is_empty: bool,  # noqa: FBT001
) -> None:
    named = {name: getattr(block, name) for name in ("workchain", "shard", "seqno")}
    named |= {name: getattr(block, name).hex() for name in ("root_hash", "file_hash")}
    slot, digest = parent or (0, bytes(32))
    candidate_id = {"@type": "consensus.candidateId", "slot": slot, "hash": digest.hex()}
    fields = {"@type": "consensus.candidateHashDataEmpty", "block": named, "parent": candidate_id}
    if not is_empty:
        above = {"@type": "consensus.candidateParent", "id": candidate_id}
        none = {"@type": "consensus.candidateWithoutParents"}
        fields["@type"] = "consensus.candidateHashDataOrdinary"
        fields |= {"collated_file_hash": collated.hex(), "parent": above if parent else none}
    data = write_candidate(fields)
    assert read_candidate_block(data) == block
    for bad in (data[:-1], data + b"\0", b"\0" + data[1:], b""):
        with pytest.raises(DecodeError):
            read_candidate_block(bad)
    vote = SimplexVote(bytes(32), 1, data)
    with pytest.raises(DecodeError, match="another block"):
        vote.check(msgspec.structs.replace(block, seqno=block.seqno ^ 1))


def flip(data: bytes, rng: random.Random) -> bytes:
    """Return the data with one bit flipped."""
    bit = rng.randrange(len(data) * 8)
    return (int.from_bytes(data) ^ 1 << bit).to_bytes(len(data))
