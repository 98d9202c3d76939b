"""A node's proofs of blocks: genuine ones hold, and any flipped bit is detected."""

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

from tests.damage import flip_any, flip_bit
from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.header import read_own_info, read_parts
from tonlake.ingest.decode.block.proof import (
    Signers,
    SimplexVote,
    check_in_python,
    check_proof,
    check_signatures,
    read_candidate_block,
    read_signatures,
    read_validators,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.ingest.source.liteserver.query import write_candidate
from tonlake.ingest.source.node.package import ENTRY_HEADER, parse_entry_name
from tonlake.ingest.source.node.source import NodeSource, open_node

MAINNET = {"rn_archive.00100.pack": 4, "rn_key.archive.000000.pack": 84}
"""Packages of mainnet with proofs, and the most signatures under a block in each."""


def list_proofs(path: Path) -> Iterator[tuple[BlockId, bytes]]:
    data, at = path.read_bytes(), 4
    while at < len(data):
        _magic, name_bytes, data_bytes = ENTRY_HEADER.unpack_from(data, at)
        start = at + ENTRY_HEADER.size + name_bytes
        at = start + data_bytes
        parsed = parse_entry_name(data[start - name_bytes : start])
        if parsed is not None and parsed[0].startswith("proof"):
            yield parsed[1], data[start:at]


@pytest.fixture(scope="module")
def blocks(demo_node: Path) -> list[RawBlock]:
    with closing(open_node(demo_node, proofs=True)) as source:
        return [block for seqno in (1, 150) for block in source.read_bundle(seqno).blocks]


def is_refused(proof: bytes, block_id: BlockId) -> bool:
    try:
        check_proof(proof, block_id)
    except (BocError, DecodeError):
        return True
    return False


def test_every_bit_counts_but_what_validators_vouch_for(blocks: list[RawBlock]) -> None:
    """A key's short id (256 bits), its signature (512) and the weight of all (64)."""
    for block in (blocks[0], blocks[-1]):
        assert block.proof is not None
        bits = range(len(block.proof) * 8)
        silent = [bit for bit in bits if not is_refused(flip_bit(block.proof, bit), block.id)]
        assert len(silent) == (256 + 512 + 64 if block.id.workchain == -1 else 0)


@pytest.mark.parametrize("name", MAINNET)
def test_mainnet(shared: Path, name: str) -> None:
    rng = random.Random(5)  # noqa: S311 - a repeatable choice
    most = 0
    for block_id, proof in list_proofs(shared / "data" / "packs" / name):
        found = check_proof(proof, block_id)
        assert found is not None
        assert found == check_in_python(proof, block_id)
        most = max(most, len(found.signatures))
        own = check_proof(proof, block_id)
        for bit in rng.sample(range(len(proof) * 8), 20):
            damaged = flip_bit(proof, bit)
            assert is_refused(damaged, block_id) or check_proof(damaged, block_id) != own
    assert most == MAINNET[name]


def test_what_is_no_proof_of_the_block(blocks: list[RawBlock]) -> None:
    first, other = blocks[0], blocks[1]
    assert first.proof is not None
    for wrong in (b"", first.proof[:-1], first.proof + b"\0", first.data):
        with pytest.raises((BocError, DecodeError)):
            check_proof(wrong, first.id)
    with pytest.raises(DecodeError, match="proof of another block"):
        check_proof(first.proof, other.id)
    with pytest.raises(DecodeError, match="proof of another block"):
        check_proof(first.proof, msgspec.structs.replace(first.id, seqno=7))
    renamed = first.proof.replace(first.id.root_hash, bytes(32), 1)  # the Merkle proof stays
    with pytest.raises(DecodeError, match="it proves the block"):
        check_proof(renamed, msgspec.structs.replace(first.id, root_hash=bytes(32)))


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
    zero = read_zero(node)
    return lambda seqno: node.read_bundle(seqno).blocks[0] if seqno else zero


def read_zero(source: NodeSource) -> RawBlock:
    state = source.zero_states()[0]
    return RawBlock(BlockId(-1, -(1 << 63), 0, state.root_hash, state.file_hash), state.data)


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
            vote = msgspec.structs.replace(vote, candidate=flip_any(vote.candidate, rng))
        elif part == "session":
            vote = msgspec.structs.replace(vote, session_id=flip_any(vote.session_id, rng))
        elif part == "node":
            pairs = [(flip_any(one.node_id_short, rng), one.signature)]
        else:
            pairs = [(one.node_id_short, flip_any(one.signature, rng))]
        with pytest.raises(DecodeError):
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
    with pytest.raises(DecodeError, match="not by two thirds"):
        check_signatures(block.id, validators, [], found.vote)
    with pytest.raises(DecodeError, match="not one of its validators"):
        check_signatures(block.id, validators, pairs * 2, found.vote)
    with pytest.raises(DecodeError, match="another block"):
        check_signatures(block.id, validators, pairs, foreign.vote)
    with pytest.raises(DecodeError, match="is wrong"):
        check_signatures(block.id, validators, pairs)  # as if the id were signed


def test_every_bit_of_a_proof_is_verified(
    node: NodeSource, read_key_block: Callable[[int], RawBlock]
) -> None:
    block = node.read_bundle(77).blocks[0]
    refuse_every_bit(Signers(read_key_block), block, find_key_seqno(block))


def refuse_every_bit(signers: Signers, block: RawBlock, key_seqno: int) -> None:
    signers.check(block, key_seqno)
    assert block.proof is not None
    for bit in range(len(block.proof) * 8):
        damaged = msgspec.structs.replace(block, proof=flip_bit(block.proof, bit))
        with pytest.raises((BocError, DecodeError)):
            signers.check(damaged, key_seqno)


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


@pytest.fixture(scope="module")
def zero(demo_node: Path) -> RawBlock:
    with closing(open_node(demo_node)) as source:
        return read_zero(source)


@pytest.fixture(scope="module")
def block(demo_node: Path) -> RawBlock:
    with closing(open_node(demo_node, proofs=True)) as source:
        return source.read_bundle(77).blocks[0]


def test_every_bit_of_an_answer_is_verified(zero: RawBlock, block: RawBlock) -> None:
    refuse_every_bit(Signers(lambda seqno: zero if seqno == 0 else None), block, 0)


def test_without_the_key_block_the_form_alone_is_checked(zero: RawBlock, block: RawBlock) -> None:
    asked: list[int] = []

    def find(seqno: int) -> RawBlock | None:
        asked.append(seqno)
        return zero if seqno == 0 else None

    signers = Signers(find)
    for _ in range(2):
        signers.check(block, 5)
        signers.check(block, 0)
        signers.check(msgspec.structs.replace(block, proof=None), 9)
    assert asked == [5, 0], "each is read once"
    with pytest.raises(BocError):
        signers.check(msgspec.structs.replace(block, proof=b""), 5)
    signers.forget()
    signers.check(block, 0)
    assert asked == [5, 0, 0]
