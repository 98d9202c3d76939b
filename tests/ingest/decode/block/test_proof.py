"""A node's proofs of blocks: genuine ones hold, and any flipped bit is detected."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.proof import check_proof
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.ingest.source.node.package import ENTRY_HEADER, parse_entry_name
from tonlake.ingest.source.node.source import open_node

MAINNET = {"rn_archive.00100.pack": 4, "rn_key.archive.000000.pack": 84}
"""Packages of mainnet with proofs, and the most signatures under a block in each."""


def list_proofs(path: Path) -> Iterator[tuple[BlockId, bytes]]:
    """Yield the proofs of a package."""
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


def flip(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def test_every_bit_counts_but_what_validators_vouch_for(blocks: list[RawBlock]) -> None:
    """A key's short id (256 bits), its signature (512) and the weight of all (64)."""
    for block in (blocks[0], blocks[-1]):
        assert block.proof is not None
        bits = range(len(block.proof) * 8)
        silent = [bit for bit in bits if not is_refused(flip(block.proof, bit), block.id)]
        assert len(silent) == (256 + 512 + 64 if block.id.workchain == -1 else 0)


@pytest.mark.parametrize("name", MAINNET)
def test_mainnet(shared: Path, name: str) -> None:
    rng = random.Random(5)  # noqa: S311 - a repeatable choice
    most = 0
    for block_id, proof in list_proofs(shared / "data" / "packs" / name):
        found = check_proof(proof, block_id)
        assert found is not None
        most = max(most, len(found.signatures))
        own = check_proof(proof, block_id)
        for bit in rng.sample(range(len(proof) * 8), 20):
            damaged = flip(proof, bit)
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
