"""Links from a block that is certain to one that is to be proven: who signed a masterchain block.

TL: liteServer.blockLinkForward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.header import read_own_info, read_parts
from tonlake.ingest.decode.block.validator import ProofInvalid, check_signatures, read_validators
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.ingest.source.liteserver.proof import open_proof

if TYPE_CHECKING:
    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.source.liteserver.connection import Answer

FORWARD, ORDINARY = "liteServer.blockLinkForward", "liteServer.signatureSet.ordinary"


def check_link(link: Answer, known: BlockId, target: BlockId) -> bool:
    """Make sure that the validators whom ``known`` names signed ``target``.

    ``known`` is a key block or the zero state; returns whether ``target`` is a key block.

    Raises:
        ProofInvalid: they did not, or the link does not show it.
    """
    if link["@type"] != FORWARD:
        raise ProofInvalid(f"a link of the form {link['@type']}")
    if link["signatures"]["@type"] != ORDINARY:
        raise ProofInvalid(f"signatures of the unknown form {link['signatures']['@type']}")
    try:
        tree = open_proof(link["dest_proof"], target.root_hash)
        info, _rest = read_own_info(tree, read_parts(tree).info)
        validators = read_validators(open_proof(link["config_proof"], known.root_hash), known)
    except (BocError, DecodeError, TypeError) as error:
        raise ProofInvalid(f"a proof from {known} to {target}: {error}") from error
    if (info["workchain"], info["seqno"]) != (target.workchain, target.seqno):
        raise ProofInvalid(f"the block that is proven is not {target}")
    signed = [
        (bytes.fromhex(one["node_id_short"]), one["signature"])
        for one in link["signatures"]["signatures"]
    ]
    check_signatures(target, validators, signed)
    return bool(info["key_block"])
