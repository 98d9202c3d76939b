"""Signatures and proofs of blocks, verified without trusting the server."""

import base64
from collections import Counter
from typing import Any

import pytest
from nacl.signing import VerifyKey
from pytoniq_core import Cell

from tests.api.v2.conftest import Asker
from tests.conftest import Facts

MASTER_SHARD = -(1 << 63)
SIGNED_PREFIX = bytes.fromhex("706e0bc5")  # ton.blockId
VALIDATORS = 34


def read_keys(ask: Asker) -> list[bytes]:
    """Return the public keys of the validators: validator#53 public_key:SigPubKey weight."""
    boc = ask("getConfigParam", param=VALIDATORS)["config"]["bytes"]
    root = Cell.one_from_boc(base64.b64decode(boc)).begin_parse()
    root.skip_bits(8 + 32 + 32 + 16 + 16 + 64)
    found = root.load_dict(16)
    assert found is not None
    keys = []
    for value in found.values():
        value.skip_bits(8 + 32)
        keys.append(value.load_bytes(32))
    return keys


def test_every_masterchain_block_is_signed(ask: Asker) -> None:
    keys = [VerifyKey(key) for key in read_keys(ask)]
    assert len(keys) == 1
    for seqno in (1, 2, 100, 101, 238):
        found = ask("getMasterchainBlockSignatures", seqno=seqno)
        assert found["@type"] == "blocks.blockSignatures"
        where = {"workchain": -1, "shard": MASTER_SHARD, "seqno": seqno}
        assert found["id"] == ask("lookupBlock", **where)
        hashes = (base64.b64decode(found["id"][name]) for name in ("root_hash", "file_hash"))
        signed = SIGNED_PREFIX + b"".join(hashes)
        for one in found["signatures"]:
            assert one["@type"] == "blocks.signature"
            assert len(base64.b64decode(one["node_id_short"])) == 32
            keys[0].verify(signed, base64.b64decode(one["signature"]))
        assert found["signatures"]


def test_shard_blocks_are_proven_from_their_masterchain_block(ask: Asker, facts: Facts) -> None:
    lengths = set()
    blocks = [block for block in facts.blocks if block["workchain"] == 0]
    together = Counter((block["mc_seqno"], block["shard"]) for block in blocks)
    chained = [block for block in blocks if together[block["mc_seqno"], block["shard"]] > 1]
    for block in blocks[::29] + chained[:6]:
        where = {name: block[name] for name in ("workchain", "shard", "seqno")}
        found = ask("getShardBlockProof", **where)
        assert found["from"] == found["mc_id"]
        assert found["mc_proof"] == []
        check_links(found)
        assert found["links"][-1]["id"] == ask("lookupBlock", **where)
        lengths.add(len(found["links"]))
    assert max(lengths) > 1


def check_links(found: dict[str, Any]) -> None:
    """Each proof is of the block named before it, and names the next one by its root hash."""
    before = found["mc_id"]
    for link in found["links"]:
        assert link["@type"] == "blocks.shardBlockLink"
        proof = Cell.one_from_boc(base64.b64decode(link["proof"]))
        assert proof.type_ == 3  # a Merkle proof
        root = base64.b64decode(before["root_hash"])
        assert proof.begin_parse().load_bytes(33)[1:] == root
        assert proof[0].get_hash(0) == root
        assert holds(proof[0], base64.b64decode(link["id"]["root_hash"]))
        before = link["id"]


def holds(cell: Cell, wanted: bytes) -> bool:
    """Tell whether bits of a cell, or of one below it, are these."""
    text = "".join(f"{byte:08b}" for byte in wanted)
    return text in cell.bits.to01() or any(holds(kid, wanted) for kid in cell.refs)


def test_a_masterchain_block_needs_no_links(ask: Asker) -> None:
    found = ask("getShardBlockProof", workchain=-1, shard=MASTER_SHARD, seqno=7, from_seqno=7)
    assert found["links"] == []
    assert found["mc_id"]["seqno"] == 7


@pytest.mark.parametrize(
    ("method", "params", "status", "text"),
    [
        ("getMasterchainBlockSignatures", {"seqno": 999}, 500, "seqno not in db"),
        ("getMasterchainBlockSignatures", {"seqno": 0}, 422, "seqno should be positive"),
        (
            "getShardBlockProof",
            {"workchain": -1, "shard": MASTER_SHARD, "seqno": 7, "from_seqno": 9},
            500,
            "block proof not in db",
        ),
        (
            "getShardBlockProof",
            {"workchain": -1, "shard": MASTER_SHARD, "seqno": 7, "from_seqno": -1},
            422,
            "from_seqno should be non-negative",
        ),
    ],
)
def test_what_is_refused(
    ask: Asker, method: str, params: dict[str, Any], status: int, text: str
) -> None:
    found_status, found_text = ask.refused(method, **params)
    assert found_status == status
    assert text in found_text
