"""A lite server: ADNL over TCP, and answers to the block queries from given blocks.

The handshake and the packets are written here from the protocol, not taken from the client under
test: ``key id, client's public key, SHA-256 of 160 random bytes, these bytes`` encrypted with
AES-256-CTR under the shared secret of X25519; then ``length, nonce, TL, SHA-256`` both ways.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from Cryptodome.Cipher import AES
from nacl.bindings import crypto_scalarmult
from nacl.signing import SigningKey, VerifyKey
from pytoniq_core.tl.generator import TlGenerator

from tests.ingest.source.liteserver.states import ProvenStates
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock, ZeroState
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.block.proof import prove_header, read_signatures
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft_cell
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.source.liteserver.config import LiteServer
from tonlake.lake.account import MASTERCHAIN

HANDSHAKE_BYTES, RANDOM_BYTES = 256, 160
PUBLIC_KEY_TAG = bytes.fromhex("c6b41348")
NOT_READY = 651
SCHEMAS = TlGenerator.with_default_schemas().generate()

Answer = dict[str, Any]


class Chain(msgspec.Struct):
    """The knowledge of servers: blocks by id, masterchain blocks by seqno, zero states."""

    blocks: dict[BlockId, RawBlock]
    masterchain: dict[int, RawBlock]
    zero_states: tuple[ZeroState, ...]
    key_seqnos: frozenset[int]


def make_chain(bundles: Iterable[McBundle], zero_states: tuple[ZeroState, ...]) -> Chain:
    """Return the knowledge of a server with these blocks, which come with their proofs."""
    blocks = {block.id: block for bundle in bundles for block in bundle.blocks}
    masterchain = {
        one.seqno: block for one, block in blocks.items() if one.workchain == MASTERCHAIN
    }
    keys = (
        one for one, block in masterchain.items() if read_header(parse_boc(block.data)).key_block
    )
    return Chain(blocks, masterchain, zero_states, frozenset(keys))


class SimulatedServer:
    """One lite server; its attributes are possible faults."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.last = max(chain.masterchain, default=0)
        self.first = 1
        self.unknown: set[BlockId] = set()
        self.swapped: dict[BlockId, bytes] = {}
        """Bytes that are sent in place of those of a block."""
        self.drop_after: int | None = None
        """Answers that are sent before the connection is cut, each time."""
        self.is_silent = False
        self.refusal: tuple[int, str] | None = None
        self.raw_answer: bytes | None = None
        self.signatures: int | None = None
        """How many signatures of a block are shown."""
        self.proof_answer: tuple[str | None, Any] | None = None
        self.states: ProvenStates | None = None
        """States that are asked for; None refuses."""
        self.altered: Callable[[str, Answer], Answer] = lambda _name, answer: answer
        """Changes an answer about a state."""
        self.sent_messages: list[bytes] = []
        self.asked: list[str] = []
        self.connections = 0
        self._key = SigningKey.generate()
        self._port = 0

    @property
    def address(self) -> LiteServer:
        return LiteServer("127.0.0.1", self._port, bytes(self._key.verify_key))

    @contextmanager
    def run(self) -> "Iterator[SimulatedServer]":
        """Listen until the block ends."""
        loop = asyncio.new_event_loop()
        listening = threading.Event()
        over = asyncio.Event()

        async def listen() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self._port = server.sockets[0].getsockname()[1]
            listening.set()
            await over.wait()
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        thread = threading.Thread(target=lambda: loop.run_until_complete(listen()), daemon=True)
        thread.start()
        listening.wait()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._talk(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = self._shake(await reader.readexactly(HANDSHAKE_BYTES))
        writer.write(outgoing.encrypt(_pack(b"")))
        answers = 0
        while True:
            size = int.from_bytes(incoming.decrypt(await reader.readexactly(4)), "little")
            packet = incoming.decrypt(await reader.readexactly(size))
            assert hashlib.sha256(packet[:-32]).digest() == packet[-32:]
            if self.is_silent:
                continue
            if answers == self.drop_after:
                return
            answers += 1
            writer.write(outgoing.encrypt(_pack(self._answer_packet(packet[32:-32]))))
            await writer.drain()

    def _shake(self, data: bytes) -> tuple[Any, Any]:
        """Return the ciphers of the incoming and the outgoing stream."""
        key_id, theirs, checksum, secret = data[:32], data[32:64], data[64:96], data[96:]
        own = bytes(self._key.verify_key)
        assert key_id == hashlib.sha256(PUBLIC_KEY_TAG + own).digest()
        shared = crypto_scalarmult(
            bytes(self._key.to_curve25519_private_key()),
            bytes(VerifyKey(theirs).to_curve25519_public_key()),
        )
        random = _make_cipher(shared[:16] + checksum[16:], checksum[:4] + shared[20:]).decrypt(
            secret
        )
        assert hashlib.sha256(random).digest() == checksum
        return _make_cipher(random[32:64], random[80:96]), _make_cipher(random[:32], random[64:80])

    def _answer_packet(self, payload: bytes) -> bytes:
        message, _size = SCHEMAS.deserialize(payload)
        if message["@type"] == "tcp.ping":
            return bytes(SCHEMAS.serialize("tcp.pong", {"random_id": message["random_id"]}))
        question = message["query"]["data"]
        answer = self.raw_answer or self._answer(question)
        packet: bytes = SCHEMAS.serialize(
            "adnl.message.answer", {"query_id": message["query_id"], "answer": answer}
        )
        return packet

    def _answer(self, question: Answer) -> bytes:
        name = question.pop("@type").removeprefix("liteServer.")
        self.asked.append(name)
        if self.refusal is not None:
            return _refuse(*self.refusal)
        kind, answer = getattr(self, f"_on_{name}")(question)
        return _refuse(*answer) if kind is None else SCHEMAS.serialize(f"liteServer.{kind}", answer)

    def _on_getMasterchainInfo(self, _question: Answer) -> Any:  # noqa: N802 - TL names it
        zero = self.chain.zero_states[0]
        hashes = {"root_hash": zero.root_hash.hex(), "file_hash": zero.file_hash.hex()}
        answer = {
            "last": _show(self.chain.masterchain[self.last].id),
            "state_root_hash": bytes(32).hex(),
            "init": {"workchain": zero.workchain} | hashes,
        }
        return "masterchainInfo", answer

    def _on_lookupBlock(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        seqno = question["id"]["seqno"]
        block = self.chain.masterchain.get(seqno)
        if block is None or not self.first <= seqno <= self.last:
            return None, (NOT_READY, "block not found")
        assert block.proof is not None
        proof = prove_header(block.proof)
        return "blockHeader", {"id": _show(block.id), "mode": 0, "header_proof": proof}

    def _on_getBlock(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        asked = question["id"]
        for block_id, block in self.chain.blocks.items():
            if _show(block_id) == {name: asked[name] for name in _show(block_id)}:
                if block_id in self.unknown:
                    break
                data = self.swapped.get(block_id, block.data)
                return "blockData", {"id": _show(block_id), "data": data}
        return None, (NOT_READY, "block is not applied")

    def _on_getState(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        for state in self.chain.zero_states:
            if state.file_hash.hex() == question["id"]["file_hash"]:
                hashes = {"root_hash": state.root_hash.hex(), "file_hash": state.file_hash.hex()}
                return "blockState", {"id": question["id"], "data": state.data} | hashes
        return None, (NOT_READY, "state not found")

    def _on_getBlockProof(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        """Prove the path from the zero state or a key block to a block, by key blocks."""
        if self.proof_answer is not None:
            return self.proof_answer
        known, target = question["known_block"], question["target_block"]
        config = self.chain.zero_states[0].data
        if known["seqno"]:
            config = self.chain.masterchain[known["seqno"]].data
        steps = []
        between = range(known["seqno"] + 1, target["seqno"])
        keys = [self.chain.masterchain[one] for one in between if one in self.chain.key_seqnos]
        for block in (*keys, self.chain.masterchain[target["seqno"]]):
            steps.append(self._make_link(known, config, block))
            known, config = steps[-1]["to"], block.data
        ends = {"from": question["known_block"], "to": known}
        return "partialBlockProof", {"complete": True, "steps": steps} | ends

    def _make_link(self, known: Answer, config: bytes, block: RawBlock) -> Answer:
        assert block.proof is not None
        found = read_signatures(block.proof)
        signed = [
            {"node_id_short": one.node_id_short.hex(), "signature": one.signature}
            for one in found.signatures
        ]
        signatures: Answer = {
            "@type": "liteServer.signatureSet.ordinary",
            "validator_set_hash": _sign(found.validator_list_hash_short),
            "catchain_seqno": found.catchain_seqno,
            "signatures": signed[: self.signatures],
        }
        if found.vote is not None:
            signatures |= {
                "@type": "liteServer.signatureSet.simplex",
                "cc_seqno": signatures.pop("catchain_seqno"),
                "session_id": found.vote.session_id.hex(),
                "slot": found.vote.slot,
                "candidate": found.vote.candidate,
            }
        return {
            "@type": "liteServer.blockLinkForward",
            "to_key_block": block.id.seqno in self.chain.key_seqnos,
            "from": known,
            "to": _show(block.id),
            "dest_proof": prove_header(block.proof),
            "config_proof": wrap_whole(config),
            "signatures": self.altered("signatures", signatures),
        }

    def _on_getAccountState(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        account = question["account"]
        found = None
        if self.states is not None:
            found = self.states.prove_account(
                question["id"]["seqno"], account["workchain"], bytes.fromhex(account["id"])
            )
        if found is None:
            return None, (NOT_READY, "state is not there")
        top, proof, state = found
        answer = {"id": question["id"], "shardblk": _show(top), "shard_proof": b""}
        answer |= {"proof": proof, "state": state}
        return "accountState", self.altered("accountState", answer)

    def _on_getConfigAll(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        if self.states is None:
            return None, (NOT_READY, "state is not there")
        found = self.states.prove_config(question["id"]["seqno"])
        answer = {"mode": 0, "id": question["id"]}
        answer |= {"state_proof": found[0], "config_proof": found[1]}
        return "configInfo", self.altered("configInfo", answer)

    def _on_sendMessage(self, question: Answer) -> Any:  # noqa: N802 - TL names it
        self.sent_messages.append(question["body"])
        return "sendMsgStatus", {"status": 1}


def wrap_whole(boc: bytes) -> bytes:
    """Return the Merkle proof that prunes nothing."""
    source, target = parse_boc(boc), CellTree()
    root = graft_cell(target, source, source.roots[0])
    depth = target.depth(root).to_bytes(2, "big")
    data = bytes((MERKLE_PROOF,)) + target.hash(root) + depth
    proof = append_cell(target, int.from_bytes(data, "big"), len(data) * 8, (root,), exotic=True)
    return serialize_boc(target, [proof])


def _refuse(code: int, message: str) -> bytes:
    text = message.encode()
    padding = b"\0" * (-(len(text) + 1) % 4)
    tag = SCHEMAS.get_by_name("liteServer.error").little_id()
    return bytes(
        tag + code.to_bytes(4, "little", signed=True) + bytes((len(text),)) + text + padding
    )


def _make_cipher(key: bytes, initial: bytes) -> Any:
    return AES.new(key, AES.MODE_CTR, initial_value=initial, nonce=b"")


def _pack(payload: bytes) -> bytes:
    inner = os.urandom(32) + payload
    inner += hashlib.sha256(inner).digest()
    return len(inner).to_bytes(4, "little") + inner


def _show(block_id: BlockId) -> Answer:
    return {
        "workchain": block_id.workchain,
        "shard": block_id.shard,
        "seqno": block_id.seqno,
        "root_hash": block_id.root_hash.hex(),
        "file_hash": block_id.file_hash.hex(),
    }


def _sign(number: int) -> int:
    """Return an unsigned 32-bit number as TL writes it."""
    return number - (1 << 32) if number >> 31 else number
