"""Signatures under masterchain blocks, verified with the validators of the key block before."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.proof import Signers
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.ingest.source.node.source import open_node


@pytest.fixture(scope="module")
def zero(demo_node: Path) -> RawBlock:
    with closing(open_node(demo_node)) as source:
        state = source.zero_states()[0]
    return RawBlock(BlockId(-1, -(1 << 63), 0, state.root_hash, state.file_hash), state.data)


@pytest.fixture(scope="module")
def block(demo_node: Path) -> RawBlock:
    with closing(open_node(demo_node, proofs=True)) as source:
        return source.read_bundle(77).blocks[0]


def test_every_bit_of_a_proof_is_verified(zero: RawBlock, block: RawBlock) -> None:
    signers = Signers(lambda seqno: zero if seqno == 0 else None)
    signers.check(block, 0)
    assert block.proof is not None
    for bit in range(len(block.proof) * 8):
        damaged = bytearray(block.proof)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises((BocError, DecodeError)):
            signers.check(msgspec.structs.replace(block, proof=bytes(damaged)), 0)


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
