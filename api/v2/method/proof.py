"""Signatures of a masterchain block, and proofs that it commits a shard block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain import header
from tonlake.api.chain.place import BLOCK_UNKNOWN, find_block, find_master, list_ancestors
from tonlake.api.errors import LiteServerError
from tonlake.api.v2.value import render_base64, render_block_of, render_boc
from tonlake.ingest.decode.block.proof import prove_header, prove_shards, read_signatures
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import MasterParams, ProofParams

    Row = Mapping[str, Any]

PROOF_UNKNOWN = "LITE_SERVER_NOTREADY: block proof not in db"
MAX_LINKS = 64
"""Upper bound of blocks of one shard that a masterchain block commits."""


def answer_signatures(call: Call, params: MasterParams) -> dict[str, Any]:
    """getMasterchainBlockSignatures: Ed25519 signatures with short key ids.

    Those of Simplex consensus come with what was signed (tonlib: blocks.blockSignatures.simplex).
    """
    master = find_master(call, params.seqno)
    try:
        signed = read_signatures(_read_proof(call, master)["proof"])
    except (DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_ERROR: {error}") from error
    answer = {
        "@type": "blocks.blockSignatures",
        "id": render_block_of(master),
        "signatures": [
            {
                "@type": "blocks.signature",
                "node_id_short": render_base64(one.node_id_short),
                "signature": render_base64(one.signature),
            }
            for one in signed.signatures
        ],
    }
    if signed.vote is None:
        return answer
    return answer | {
        "@type": "blocks.blockSignatures.simplex",
        "session_id": render_base64(signed.vote.session_id),
        "slot": signed.vote.slot,
        "candidate": render_base64(signed.vote.candidate),
    }


def answer_shard_proof(call: Call, params: ProofParams) -> dict[str, Any]:
    """getShardBlockProof: proof of a shard block from the masterchain block that commits it.

    Raises:
        LiteServerError: the lake lacks the block or a proof, or the reader trusts another
            masterchain block: proofs between masterchain blocks are not stored.
    """
    block = find_block(call, params.workchain, params.shard, params.seqno)
    master = find_master(call, block["mc_seqno"])
    if params.from_seqno not in (None, 0, master["seqno"]):
        raise LiteServerError(
            f"{PROOF_UNKNOWN}: the block is committed by masterchain block {master['seqno']}, and "
            f"proofs between that one and {params.from_seqno} are not kept; ask from_seqno "
            f"{master['seqno']}"
        )
    try:
        links = _link(call, master, block)
    except (DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_ERROR: {error}") from error
    return {
        "@type": "blocks.shardBlockProof",
        "from": render_block_of(master),
        "mc_id": render_block_of(master),
        "links": links,
        "mc_proof": [],
    }


def _link(call: Call, master: Row, block: Row) -> list[dict[str, Any]]:
    """Return the proof links from a masterchain block to a block that it commits."""
    if block["workchain"] == MASTERCHAIN:
        return []
    current = _find_top(call, master, block)
    row = _read_proof(call, master)
    if row["mc_extra"] is None:
        raise LiteServerError(f"{PROOF_UNKNOWN}: the lake has no shard tops of {master['seqno']}")
    links = [_render_link(current, prove_shards(row["proof"], row["mc_extra"]))]
    while _name(current) != _name(block):
        if len(links) > MAX_LINKS:
            raise LiteServerError("LITE_SERVER_ERROR: proof chain is too long")
        proof = prove_header(_read_proof(call, current)["proof"])
        current = _find_previous(call, current, block["shard"])
        links.append(_render_link(current, proof))
    return links


def _find_top(call: Call, master: Row, block: Row) -> Row:
    """Return the shard top of a masterchain block that descends from a block."""
    for top in call.reader.rows("v2/shards", mc_seqno=master["seqno"]):
        if top["workchain"] == block["workchain"] and _overlap(top["shard"], block["shard"]):
            return _read_block(call, top["workchain"], top["shard"], top["seqno"])
    raise LiteServerError(BLOCK_UNKNOWN)


def _find_previous(call: Call, row: Row, shard: int) -> Row:
    """Return the previous block; after a merge, the one that overlaps ``shard``."""
    second = row["prev2_shard"] is not None and not _overlap(row["prev_shard"], shard)
    name = "prev2" if second else "prev"
    return _read_block(call, row["workchain"], row[f"{name}_shard"], row[f"{name}_seqno"])


def _read_block(call: Call, workchain: int, shard: int, seqno: int) -> Row:
    row = header.find_block(call.reader, workchain, [shard], seqno)
    if row is None:
        raise LiteServerError(BLOCK_UNKNOWN)
    return row


def _read_proof(call: Call, block: Row) -> Row:
    """Return the proof of a block as stored in the lake."""
    columns = ("workchain", "shard", "seqno", "mc_seqno")
    row = call.reader.one("v2/block_proof", **{name: block[name] for name in columns})
    if row is None:
        raise LiteServerError(f"{PROOF_UNKNOWN}: the lake has this block without its proof")
    return row


def _name(row: Row) -> tuple[int, int, int]:
    return row["workchain"], row["shard"], row["seqno"]


def _overlap(left: int, right: int) -> bool:
    """Return whether either shard contains the other."""
    return left in list_ancestors(right) or right in list_ancestors(left)


def _render_link(block: Row, proof: bytes) -> dict[str, Any]:
    return {
        "@type": "blocks.shardBlockLink",
        "id": render_block_of(block),
        "proof": render_boc(proof),
    }
