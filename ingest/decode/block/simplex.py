"""Reads what the validators of a Simplex block have signed.

TL-B: block_signatures_simplex#12 … session_id:bits256 slot:uint32 candidate_data:^Cell. The data
are a snake of cells with the boxed TL value consensus.CandidateHashData; a constructor's number is
the CRC-32 of its line in the schema.
"""

from __future__ import annotations

import binascii
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.ingest.decode.cell.tree import CellTree


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
_ID_BYTES, _CANDIDATE_ID_BYTES, _HASH_BYTES, _TAG_BYTES = 80, 36, 32, 4
_MAX_BYTES = 4096
"""Upper bound of a candidate's description, which has 160 bytes at most today."""


class SimplexVote(msgspec.Struct, frozen=True):
    """What validators voted to finalize: session, slot, and the description of a candidate.

    ``candidate`` is the boxed TL value consensus.CandidateHashData.
    """

    session_id: bytes
    slot: int
    candidate: bytes

    def check(self, target: BlockId) -> None:
        """Verify that the candidate is a block.

        Raises:
            DecodeError: it is another block, or the description is malformed.
        """
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
    """Return the block that a candidate's description names.

    Raises:
        DecodeError: it is not a whole consensus.CandidateHashData.
    """
    tag, rest = candidate[:_TAG_BYTES], candidate[_TAG_BYTES + _ID_BYTES :]
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
    block = candidate[_TAG_BYTES:]
    workchain, shard, seqno = (
        int.from_bytes(block[start:end], "little", signed=True)
        for start, end in ((0, 4), (4, 12), (12, 16))
    )
    return BlockId(workchain, shard, seqno, block[16:48], block[48:80])


def write_candidate(fields: Mapping[str, Any]) -> bytes:
    """Return the boxed bytes of a consensus.CandidateHashData that a TL library has parsed.

    Raises:
        DecodeError: a field is missing or has another form.
    """
    try:
        block, parent = fields["block"], fields["parent"]
        data: bytes = (
            block["workchain"].to_bytes(4, "little", signed=True)
            + block["shard"].to_bytes(8, "little", signed=True)
            + block["seqno"].to_bytes(4, "little", signed=True)
            + bytes.fromhex(block["root_hash"])
            + bytes.fromhex(block["file_hash"])
        )
        if fields["@type"] == "consensus.candidateHashDataEmpty":
            return _EMPTY + data + _write_candidate_id(parent)
        data = _ORDINARY + data + bytes.fromhex(fields["collated_file_hash"])
        if parent["@type"] == "consensus.candidateWithoutParents":
            return data + _NO_PARENT
        return data + _PARENT + _CANDIDATE_ID + _write_candidate_id(parent["id"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecodeError(
            f"the candidate of the signatures has an unknown form: {error}"
        ) from error


def _write_candidate_id(fields: Mapping[str, Any]) -> bytes:
    slot: int = fields["slot"]
    return slot.to_bytes(4, "little", signed=True) + bytes.fromhex(fields["hash"])


def read_snake(tree: CellTree, cell: int) -> bytes:
    """Return the bytes of a chain of cells, the next one in the only reference.

    Raises:
        DecodeError: a cell has odd bits or several references, or the chain is too long.
    """
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
