"""Queries to lite servers whose answers are verified by hashes, ids and Merkle proofs.

The newest block and look-ups by seqno cannot be verified here; the source compares them with
other blocks. Links (TL: liteServer.blockLinkForward) prove one block from a trusted one by the
signatures of validators. A Merkle proof of a block shows the hash of the state after it; a second
one, of that state, shows the path to the requested object, or to where it would be.
"""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from pytoniq_core.tl.generator import TlGenerator

from tonlake.ingest.blocks import MASTERCHAIN_SHARD, BlockId, McHead
from tonlake.ingest.decode.block.block import read_params
from tonlake.ingest.decode.block.header import read_own_info, read_parts, read_state_hash
from tonlake.ingest.decode.block.proof import SimplexVote, check_signatures, read_validators
from tonlake.ingest.decode.block.state import find_account, read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, CellTree
from tonlake.ingest.errors import BocError, DecodeError, ServerFault, SourceError
from tonlake.ingest.source.liteserver.config import read_config as read_network_config
from tonlake.ingest.source.liteserver.pool import Answer, Background, ServerConnection, ServerPool
from tonlake.lake.account import MASTERCHAIN

FORWARD = "liteServer.blockLinkForward"
ORDINARY, SIMPLEX = "liteServer.signatureSet.ordinary", "liteServer.signatureSet.simplex"
_UINT32 = 0xFFFFFFFF
"""TL numbers are signed."""


def check_link(link: Answer, known: BlockId, target: BlockId) -> bool:
    """Verify that the validators that ``known`` names signed ``target``; return if a key block."""
    if link["@type"] != FORWARD:
        raise DecodeError(f"a link of the form {link['@type']}")
    if link["signatures"]["@type"] not in (ORDINARY, SIMPLEX):
        raise DecodeError(f"signatures of unknown form {link['signatures']['@type']}")
    try:
        tree = open_proof(link["dest_proof"], target.root_hash)
        info, _rest = read_own_info(tree, read_parts(tree).info)
        validators = read_validators(open_proof(link["config_proof"], known.root_hash), known)
        vote = _read_vote(link["signatures"])
    except (BocError, DecodeError, TypeError) as error:
        raise DecodeError(f"a proof from {known} to {target}: {error}") from error
    if (info["workchain"], info["seqno"]) != (target.workchain, target.seqno):
        raise DecodeError(f"it proves another block than {target}")
    signatures = link["signatures"]
    seqno = "catchain_seqno" if vote is None else "cc_seqno"
    declared = signatures["validator_set_hash"] & _UINT32, signatures[seqno] & _UINT32
    if declared != (info["validator_list_hash_short"] & _UINT32, info["gen_catchain_seqno"]):
        raise DecodeError(f"{target} is signed by another validator set than the block names")
    signed = [
        (bytes.fromhex(one["node_id_short"]), one["signature"]) for one in signatures["signatures"]
    ]
    check_signatures(target, validators, signed, vote)
    return bool(info["key_block"])


def _read_vote(signatures: Answer) -> SimplexVote | None:
    """Return what a set of signatures is of; None for the id of the block."""
    if signatures["@type"] != SIMPLEX:
        return None
    candidate = write_candidate(signatures["candidate"])
    session_id = bytes.fromhex(signatures["session_id"])
    return SimplexVote(session_id, signatures["slot"] & _UINT32, candidate)


def write_candidate(fields: Answer | bytes) -> bytes:
    """Return the boxed bytes of a consensus.CandidateHashData that the client has parsed.

    Bytes of an unknown constructor are left as they are by the client, and here.
    """
    if isinstance(fields, bytes):
        return fields
    schemas = TlGenerator.with_default_schemas().generate()
    data: bytes = schemas.serialize(schemas.get_by_name(fields["@type"]), fields)
    return data


def open_proof(data: bytes, root_hash: bytes, at: int = 0) -> CellTree:
    """Return the tree that a Merkle proof contains, with the proven cell as its root."""
    tree = parse_boc(data)
    if at >= len(tree.roots):
        raise BocError(f"it has {len(tree.roots)} roots, and no proof at {at}")
    proof = tree.roots[at]
    if tree.kind(proof) != MERKLE_PROOF:
        raise BocError("it is not a Merkle proof")
    (root,) = tree.links[proof]
    if tree.hash(root, 0) != root_hash:
        raise BocError(f"it proves {tree.hash(root, 0).hex()}, not {root_hash.hex()}")
    tree.roots = [root]
    return tree


BY_SEQNO = 1
"""Mode of lookupBlock."""


class LiteServerQueries(ServerPool):
    """Queries to a pool of lite servers."""

    async def ask_newest(self) -> tuple[BlockId, BlockId]:
        """Return the newest masterchain block of all servers, and the zero state of the network."""

        def read(connection: ServerConnection, answer: Answer) -> tuple[BlockId, BlockId]:
            last = read_id(answer["last"])
            connection.last_mc_seqno = last.seqno
            init = answer["init"]
            zero = {"shard": MASTERCHAIN_SHARD, "seqno": 0}
            return last, read_id(init | zero)

        name = "getMasterchainInfo"
        found = await self.ask_all(name, read)
        if len({zero for _last, zero in found}) > 1:
            raise ServerFault("the lite servers belong to different networks", name=name)
        return max(found, key=lambda pair: pair[0].seqno)

    async def find_mc_block(self, mc_seqno: int) -> tuple[BlockId, McHead]:
        """Return id and head of the masterchain block ``mc_seqno``."""
        place = {"workchain": MASTERCHAIN, "shard": MASTERCHAIN_SHARD, "seqno": mc_seqno}

        def read(answer: Answer) -> tuple[BlockId, McHead]:
            block_id = read_id(answer["id"])
            if (block_id.workchain, block_id.seqno) != (MASTERCHAIN, mc_seqno):
                raise DecodeError(f"{block_id} instead of masterchain block {mc_seqno}")
            gen_utime = _read_gen_utime(answer["header_proof"], block_id)
            return block_id, McHead(mc_seqno, block_id.root_hash, gen_utime)

        asked = {"mode": BY_SEQNO, "id": place}
        return await self.ask("lookupBlock", asked, read, mc_seqno=mc_seqno)

    async def prove(self, known: BlockId, target: BlockId) -> BlockId:
        """Verify that validators signed a later block; return the newest key block on the way."""
        key_block, reached = known, known
        while reached != target:
            key_block, reached = await self._ask_links(key_block, target)
        return key_block

    async def _ask_links(self, known: BlockId, target: BlockId) -> tuple[BlockId, BlockId]:
        def read(answer: Answer) -> tuple[BlockId, BlockId]:
            key_block = reached = known
            for link in answer["steps"]:
                if reached != key_block or read_id(link["from"]) != key_block:
                    raise DecodeError(f"the proof of {target} is not a chain of key blocks")
                reached = read_id(link["to"])
                if check_link(link, key_block, reached):
                    key_block = reached
            if reached == known or reached not in {target, key_block}:
                raise DecodeError(f"the proof of {target} does not lead on from {known}")
            return key_block, reached

        asked = {"mode": 1, "known_block": write_id(known), "target_block": write_id(target)}
        return await self.ask("getBlockProof", asked, read, mc_seqno=target.seqno)

    async def ask_block(self, block_id: BlockId, mc_seqno: int, name: str = "getBlock") -> bytes:
        """Return the bytes of a block, or of a zero state, after verifying their file hash."""

        def read(answer: Answer) -> bytes:
            data = answer["data"]
            if not isinstance(data, bytes) or (hashlib.sha256(data).digest() != block_id.file_hash):
                reason = f"the SHA-256 of the bytes sent for {block_id} is not its file hash"
                raise DecodeError(reason)
            return data

        asked = {"id": write_id(block_id)}
        return await self.ask(name, asked, read, mc_seqno=mc_seqno)


def write_id(block_id: BlockId) -> Answer:
    """Return the fields of ``tonNode.blockIdExt`` for a block id."""
    hashes = {"root_hash": block_id.root_hash.hex(), "file_hash": block_id.file_hash.hex()}
    return msgspec.structs.asdict(block_id) | hashes


def read_id(found: Answer) -> BlockId:
    """Return the block id in the fields of ``tonNode.blockIdExt``."""
    numbers = (found[key] for key in ("workchain", "shard", "seqno"))
    hashes = (bytes.fromhex(found[key]) for key in ("root_hash", "file_hash"))
    block_id = BlockId(*numbers, *hashes)
    if block_id.seqno < 0:
        raise DecodeError(f"a block with seqno {block_id.seqno}")
    return block_id


def _read_gen_utime(proof: object, block_id: BlockId) -> int:
    if not isinstance(proof, bytes):
        raise DecodeError(f"there is no proof of {block_id}")
    try:
        tree = open_proof(proof, block_id.root_hash)
        info, _rest = read_own_info(tree, read_parts(tree).info)
    except (BocError, DecodeError) as error:
        raise DecodeError(f"the proof of {block_id}: {error}") from error
    place = info["workchain"], info["shard"], info["seqno"]
    if place != (block_id.workchain, block_id.shard, block_id.seqno):
        raise DecodeError(f"the proof is not that of {block_id}")
    gen_utime: int = info["gen_utime"]
    return gen_utime


T = TypeVar("T")

REST_S = 5.0
"""Seconds for which no server is asked after all have failed."""


class ProvenAccount(msgspec.Struct, frozen=True):
    """An account after a block; ``boc`` is its Account cell."""

    hash: bytes
    last_trans_lt: int
    last_trans_hash: bytes
    boc: bytes


class StateServers:
    """Fetches states from lite servers; may be called from any thread.

    Methods raise ServerRefusal if the servers do not have the requested object, and SourceError
    if none sends a valid answer; for ``REST_S`` seconds after that no server is asked.
    """

    def __init__(self, config: Path, *, timeout_ms: int, parallel_queries: int) -> None:
        """Ask the lite servers of a configuration file, once there is a question."""
        servers = read_network_config(config).servers
        self._pool = ServerPool(servers, timeout_ms=timeout_ms, parallel_queries=parallel_queries)
        self._background = Background()
        self._rests_until_s = float("-inf")
        self._problem = ""

    def ask_account(
        self, master: BlockId, top: BlockId, workchain: int, account: bytes
    ) -> ProvenAccount | None:
        """Return an account after a masterchain block; None if it does not exist."""

        def read(answer: Answer) -> ProvenAccount | None:
            return read_account_answer(answer["proof"], answer["state"], top.root_hash, account)

        asked = {"id": write_id(master), "account": {"workchain": workchain, "id": account.hex()}}
        return self._ask("getAccountState", asked, read, master.seqno)

    def ask_config(self, master: BlockId) -> dict[int, bytes]:
        """Return the configuration after a masterchain block: a bag of cells per parameter."""

        def read(answer: Answer) -> dict[int, bytes]:
            hashed = open_proof(answer["state_proof"], master.root_hash)
            tree = open_proof(answer["config_proof"], read_state_hash(hashed))
            root = read_config(tree, read_state(tree, tree.roots[0]))
            if root is None or tree.level_mask(root):
                raise DecodeError("a part of the configuration is not shown")
            return {param: boc for _, _, param, _, boc in read_params(tree, root, 0, 0)}

        return self._ask("getConfigAll", {"mode": 0, "id": write_id(master)}, read, master.seqno)

    def close(self) -> None:
        """End all connections."""
        self._background.close(self._pool.close)

    def _ask(self, name: str, asked: Answer, read: Callable[[Answer], T], mc_seqno: int) -> T:
        if time.monotonic() < self._rests_until_s:
            raise SourceError(self._problem)
        try:
            return self._background.run(self._pool.ask(name, asked, read, mc_seqno=mc_seqno))
        except ServerFault as error:
            self._rests_until_s, self._problem = time.monotonic() + REST_S, str(error)
            raise


def read_account_answer(
    proof: bytes, state: bytes, root_hash: bytes, account: bytes
) -> ProvenAccount | None:
    """Return an account after the block with ``root_hash``; None if it does not exist."""
    hashed = open_proof(proof, root_hash)
    tree = open_proof(proof, read_state_hash(hashed), 1)
    entry = find_account(tree, read_state(tree, tree.roots[0]).accounts, account)
    if entry is None:
        if state:
            raise DecodeError("a state was sent for an account that does not exist")
        return None
    expected = tree.hash(entry.cell, 0)
    shown = parse_boc(state)
    if len(shown.roots) != 1 or shown.level_mask(shown.roots[0]):
        raise DecodeError("the state that was sent is pruned")
    if shown.hash(shown.roots[0]) != expected:
        raise DecodeError(f"the hash of the state that was sent is not the proven {expected.hex()}")
    return ProvenAccount(expected, entry.last_trans_lt, entry.last_trans_hash, state)
