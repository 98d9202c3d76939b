"""Telegram wallets: signed requests, sent by the owner or by a relayer that pays.

A request begins with signature:bits512, an opcode and subwallet_id:uint32 valid_until:uint32
seqno:uint32. In a key rotation, these are followed by new_public_key:bits256
rotation_signature:^bits512 encrypted_old_private_key:^bits256. Source: the scheme of these bodies
in ton-marker.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message, Node, Transaction
from tonlake.ingest.derive.action.pattern import Match, call
from tonlake.ingest.derive.action.rule import EXTRA, Block, rule
from tonlake.ingest.errors import BodyError, IngestError
from tonlake.lake.file.rows import keep_rows

CHANGE_KEY_INTERNAL, CHANGE_KEY_EXTERNAL = 0xFBBA99C7, 0xFBBA99C8
SEND_ONE_INTERNAL, SEND_ONE_EXTERNAL = 0x63896E74, 0x63896E75
SEND_BULK_INTERNAL, SEND_BULK_EXTERNAL = 0x73896E74, 0x73896E75
_WALLET_V5_INTERNAL = 0x73696E74
_INTERNAL = frozenset((CHANGE_KEY_INTERNAL, SEND_ONE_INTERNAL, SEND_BULK_INTERNAL))
_EXTERNAL = frozenset((CHANGE_KEY_EXTERNAL, SEND_ONE_EXTERNAL, SEND_BULK_EXTERNAL))
_REQUESTS, _GASLESS = _INTERNAL | _EXTERNAL, _INTERNAL | {_WALLET_V5_INTERNAL}
_SEND_MARK, _KEY_MARK = b"\x89\x6e", b"\xba\x99"
"""Second and third byte of the opcodes of requests."""
SIGNATURE_BITS = 512
_KEY_BITS = 256
_ROTATION = b"KEY_ROTATION"
_ROTATION_BYTES = pa.array(range(216, 301), pa.int32())
"""Size of a rotation as a bag of cells in bytes: without a header, and with the longest one."""


def read_opcode(message: Message) -> int | None:
    """Return the opcode after a signature if it is that of a request, else the message's own."""
    boc = message.boc
    if boc is None or not (_SEND_MARK in boc or _KEY_MARK in boc):
        return message.opcode
    try:
        opcode = message.body().skip(SIGNATURE_BITS).peek_opcode()
    except IngestError:
        return message.opcode
    return opcode if opcode in _REQUESTS else message.opcode


def is_gasless(node: Node, opcode: int | None) -> bool:
    """Return whether a call is a request that a relayer sent and paid for."""
    message = node.message
    has_source = message is not None and message.source is not None
    return has_source and not node.is_log and opcode in _GASLESS


def find_request(body: CellSlice) -> int | None:
    """Return the opcode of an external request of the owner at the start of a body, or None."""
    if body.bits_left < SIGNATURE_BITS + 32:
        return None
    opcode = body.copy().skip(SIGNATURE_BITS).load_uint(32)
    return opcode if opcode in _EXTERNAL else None


def list_messages(body: CellSlice) -> Iterator[int]:
    """Yield the cells of the messages that a request sends, in order.

    The common fields are followed by send_mode:uint8 message:^MessageRelaxed, or by
    messages_count:uint8 first_chunk:(Maybe ^Chunk), where a chunk is next:(Maybe ^Chunk) and items
    of send_mode:uint8 message:^MessageRelaxed. Raises BodyError if the number of messages
    differs.
    """
    body.skip(SIGNATURE_BITS)
    opcode = body.load_uint(32)
    if opcode == CHANGE_KEY_EXTERNAL:
        return
    body.skip(3 * 32)
    count = body.load_uint(8)
    if opcode == SEND_ONE_EXTERNAL:
        yield body.load_ref()
        return
    following = body.load_maybe_ref()
    while following is not None:
        chunk = body.tree.slice(following)
        following = chunk.load_maybe_ref()
        while chunk.bits_left or chunk.refs_left:
            chunk.skip(8)
            count -= 1
            yield chunk.load_ref()
    if count:
        raise BodyError("the number of messages in a request differs from messages_count")


def find_rotations(messages: pa.Table) -> pa.Table:
    """Return the rows of ``messages`` that may be key rotations sent by a relayer."""
    sizes = pc.binary_length(messages["body"])
    found = keep_rows(messages, pc.is_in(sizes, value_set=_ROTATION_BYTES))
    if not found.num_rows:
        return found
    return keep_rows(found, pc.match_substring(found["body"], CHANGE_KEY_INTERNAL.to_bytes(4)))


class Rotation(NamedTuple):
    """A request to change the key; numbers are unsigned, keys and signatures hexadecimal."""

    subwallet: int
    valid_until: int
    seqno: int
    key: str
    signature: str
    old_key: str


def read_rotation(body: Body) -> Rotation | None:
    """Read a request from its signature on; None if its cells have data after the fields."""
    body.skip(SIGNATURE_BITS + 32)
    numbers = body.uint(32), body.uint(32), body.uint(32)
    key, signature, old_key = body.hex(_KEY_BITS), body.child(), body.child()
    rotation = Rotation(*numbers, key, signature.hex(SIGNATURE_BITS), old_key.hex(_KEY_BITS))
    return rotation if all(part.is_empty for part in (body, signature, old_key)) else None


def _is_consistent(
    rotation: Rotation, request: Body, transaction: Transaction, interfaces: Interfaces
) -> bool:
    """Return whether the wallet's storage agrees with a rotation; True if it is unknown.

    The storage is revision:uint8 seqno:uint32 subwallet:uint32 public_key:uint256 of the account's
    last state: either after the request, with the new key, or before it, with the key that signed
    the request.
    """
    data = interfaces.data(transaction.account)
    if data is None:
        return True
    seqno, subwallet, key = data.skip(8).uint(32), data.uint(32), data.hex(_KEY_BITS)
    if rotation.valid_until <= transaction.now or subwallet != rotation.subwallet:
        return False
    if not _is_signed(rotation.key, _hash_rotation(transaction.account), rotation.signature):
        return False
    if seqno == rotation.seqno:
        signature = request.hex(SIGNATURE_BITS)
        return _is_signed(key, request.hash(), signature)
    return key == rotation.key and seqno > rotation.seqno


def _hash_rotation(account: str) -> bytes:
    """Return the hash that the new key signs: that of a cell with a constant and the account."""
    workchain, _, digits = account.partition(":")
    builder = CellBuilder().store_bytes(_ROTATION).store_int(int(workchain), 8)
    return builder.tree.hash(builder.store_bytes(bytes.fromhex(digits)).end())


def _is_signed(key: str, signed: bytes, signature: str) -> bool:
    try:
        VerifyKey(bytes.fromhex(key)).verify(signed, bytes.fromhex(signature))
    except BadSignatureError:
        return False
    return True


@rule(call(CHANGE_KEY_EXTERNAL, CHANGE_KEY_INTERNAL))
def change_key(match: Match) -> Block | None:
    """Draft a key rotation that took effect."""
    block = match.block
    message, transaction = block.message, block.transaction
    is_external = message.source is None
    if block.opcode != (CHANGE_KEY_EXTERNAL if is_external else CHANGE_KEY_INTERNAL):
        return None
    body = message.body()
    rotation = read_rotation(body.copy())
    if rotation is None or not transaction.ran or block.nodes[0].is_log:
        return None
    if not is_external and not _is_consistent(rotation, body, transaction, match.interfaces):
        return None
    extra = {
        "new_public_key": rotation.key,
        "rotation_signature": rotation.signature,
        "encrypted_old_private_key": rotation.old_key,
    }
    columns = block.pick("source", "destination", "value")
    return Block("change_wallet_key", columns | {EXTRA: extra})
