"""Signatures of validators: genuine ones are accepted, too few or none are refused."""

import hashlib
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from tests.conftest import unpack
from tests.ingest.source.liteserver.conftest import LAST
from tests.ingest.source.liteserver.server import Chain, SimulatedServer, make_chain
from tests.patience import compose
from tonlake.ingest.blocks import BlockId, McBundle
from tonlake.ingest.decode.block.proof import (
    KEY_TAG,
    SIGNED_TAG,
    ProofInvalid,
    Validator,
    check_signatures,
)
from tonlake.ingest.errors import ServerFault, ServerRefusal, SourceError
from tonlake.ingest.source.liteserver.config import NetworkConfig
from tonlake.ingest.source.liteserver.source import LiteSource
from tonlake.ingest.source.node.source import open_node

SETTINGS = compose(liteserver={"proofs": True, "poll_ms": 0})
TARGET = BlockId(-1, -(1 << 63), 7, b"r" * 32, b"f" * 32)


def open_proven(stack: ExitStack, chain: Chain, *servers: SimulatedServer) -> LiteSource:
    zero = chain.zero_states[0]
    known = BlockId(-1, -(1 << 63), 0, zero.root_hash, zero.file_hash)
    for server in servers:
        stack.enter_context(server.run())
    config = NetworkConfig(tuple(server.address for server in servers), known, None)
    return stack.enter_context(closing(LiteSource(config, SETTINGS.liteserver)))


def test_genuine_signatures(chain: Chain, bundles: list[McBundle]) -> None:
    server = SimulatedServer(chain)
    with ExitStack() as stack:
        source = open_proven(stack, chain, server)
        for mc_seqno in range(1, LAST + 1):
            block = source.read_bundle(mc_seqno).blocks[0]
            assert block.data == bundles[mc_seqno - 1].blocks[0].data
        assert server.asked.count("getBlockProof") == 2


def test_signatures_of_simplex(newest_node: Path) -> None:
    """A proven chain of Simplex blocks; a changed part of what was signed is refused."""
    with closing(open_node(newest_node, proofs=True)) as node:
        bundles = [node.read_bundle(mc_seqno) for mc_seqno in range(1, LAST + 1)]
        server = SimulatedServer(make_chain(bundles, node.zero_states()))
    with ExitStack() as stack:
        source = open_proven(stack, server.chain, server)
        for bundle in bundles:
            assert source.read_bundle(bundle.mc_seqno).blocks[0].data == bundle.blocks[0].data
    changes: list[tuple[str, Any, str]] = [
        ("session_id", "00" * 32, "is wrong"),
        ("slot", 7_000_000, "is wrong"),
        ("candidate", b"\0" * 160, "unknown form"),
        ("cc_seqno", 99, "another validator set"),
        ("validator_set_hash", 1, "another validator set"),
        ("signatures", [], "not by two thirds"),
    ]
    for name, value, reason in changes:
        assert_refused(server, name, value, reason)


@pytest.mark.parametrize("name", ["catchain_seqno", "validator_set_hash"])
def test_another_validator_set_is_refused(chain: Chain, name: str) -> None:
    assert_refused(SimulatedServer(chain), name, 12345, "another validator set")


def assert_refused(server: SimulatedServer, name: str, value: object, reason: str) -> None:
    """Check that signatures with a changed field are refused, with the reason."""
    server.altered = lambda _kind, answer: answer | {name: value}
    with ExitStack() as stack:
        source = open_proven(stack, server.chain, server)
        with pytest.raises(ServerFault, match=reason):
            source.read_bundle(5)


@pytest.mark.long
def test_key_blocks_lead_on(shared: Path, tmp_path: Path) -> None:
    """The validators of a network that re-elects them: each key block names the next ones."""
    db_dir = unpack(shared / "node" / "localnet-db.tar.zst", tmp_path)
    with closing(open_node(db_dir, proofs=True)) as node:
        first, last = node.first_mc_seqno(), node.last_mc_seqno()
        bundles = [node.read_bundle(mc_seqno) for mc_seqno in range(first, last + 1)]
        chain = make_chain(bundles, node.zero_states())
    assert chain.key_seqnos
    server = SimulatedServer(chain)
    with ExitStack() as stack:
        source = open_proven(stack, chain, server)
        for bundle in (bundles[last - first - 20], bundles[-1]):
            found = source.read_bundle(bundle.mc_seqno)
            assert [block.data for block in found.blocks] == [block.data for block in bundle.blocks]
        key_block = source._windows._key_block
        assert key_block is not None
        assert key_block.seqno == max(chain.key_seqnos)


def test_blocks_without_signatures(chain: Chain, bundles: list[McBundle]) -> None:
    """Unproven blocks are refused, and taken from a server that can prove them."""
    server = SimulatedServer(chain)
    server.signatures = 0
    with ExitStack() as stack:
        source = open_proven(stack, chain, server)
        with pytest.raises(ServerFault, match="not by two thirds"):
            source.read_bundle(5)
        server.signatures = None
        server.proof_answer = None, (651, "no proof")
        with pytest.raises(ServerRefusal, match="no proof"):
            source.read_bundle(5)
        ends: dict[str, Any] = {"id": None, "complete": True, "steps": []}
        shown = {
            "workchain": -1,
            "shard": -(1 << 63),
            "seqno": 1,
            "root_hash": "00" * 32,
            "file_hash": "00" * 32,
        }
        server.proof_answer = "partialBlockProof", ends | {"from": shown, "to": shown}
        with pytest.raises(ServerFault, match="does not lead on"):
            source.read_bundle(5)
    with ExitStack() as stack:
        source = open_proven(stack, chain, server, SimulatedServer(chain))
        assert source.read_bundle(5).blocks[0].data == bundles[4].blocks[0].data


def test_there_must_be_something_to_prove_by(chain: Chain) -> None:
    with SimulatedServer(chain).run() as server:
        config = NetworkConfig((server.address,), None, None)
        with pytest.raises(SourceError, match="no init_block"):
            LiteSource(config, SETTINGS.liteserver)


def sign(*keys: SigningKey) -> list[tuple[bytes, bytes]]:
    message = SIGNED_TAG + TARGET.root_hash + TARGET.file_hash
    ids = (hashlib.sha256(KEY_TAG + bytes(key.verify_key)).digest() for key in keys)
    return [(one, key.sign(message).signature) for one, key in zip(ids, keys, strict=True)]


def test_two_thirds_by_weight() -> None:
    keys = [SigningKey(bytes((number,)) * 32) for number in range(4)]
    weights = (4, 3, 2, 3)
    listed = [
        Validator(bytes(key.verify_key), weight) for key, weight in zip(keys, weights, strict=True)
    ]
    check_signatures(TARGET, listed, sign(keys[0], keys[1], keys[2]))
    for few in (sign(), sign(keys[0], keys[1]), sign(keys[1], keys[2], keys[3])):
        with pytest.raises(ProofInvalid, match="not by two thirds"):
            check_signatures(TARGET, listed, few)
    with pytest.raises(ProofInvalid, match="not one of its validators"):
        check_signatures(TARGET, listed, sign(keys[0], keys[0], keys[1], keys[2]))
    with pytest.raises(ProofInvalid, match="not one of its validators"):
        check_signatures(TARGET, listed[:3], sign(keys[3]))
    (first, signature), *others = sign(*keys)
    damaged = bytes((signature[0] ^ 1,)) + signature[1:]
    for wrong in (damaged, signature[:-1], b""):
        with pytest.raises(ProofInvalid, match="is wrong"):
            check_signatures(TARGET, listed, [(first, wrong), *others])
