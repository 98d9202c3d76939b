"""Signed requests to wallets: their opcodes, those that others pay for, and what they send.

A request to a Telegram wallet begins with its signature, so that its opcode does not stand where
other messages have theirs. Source: ``ingest/derive/body/layouts.tlb``, TgWalletRequest and
W5SignedRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.pattern import UNREADABLE
from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.ingest.derive.action.body import Body
    from tonlake.ingest.derive.action.model import Message

SIGNATURE_BITS = 512
CHANGE_KEY, CHANGE_KEY_EXTERNAL = 0xFBBA99C7, 0xFBBA99C8
SEND_ONE, SEND_ONE_EXTERNAL = 0x63896E74, 0x63896E75
SEND_BULK, SEND_BULK_EXTERNAL = 0x73896E74, 0x73896E75
W5_INTERNAL = 0x73696E74
_BEHIND_SIGNATURE = frozenset(
    (CHANGE_KEY, CHANGE_KEY_EXTERNAL, SEND_ONE, SEND_ONE_EXTERNAL, SEND_BULK, SEND_BULK_EXTERNAL)
)
_DIGITS = tuple(opcode.to_bytes(4, "big") for opcode in sorted(_BEHIND_SIGNATURE))
_GASLESS = frozenset((CHANGE_KEY, SEND_ONE, SEND_BULK, W5_INTERNAL))
_HEAD_BITS = 96
"""subwallet_id:uint32 valid_until:uint32 seqno:uint32"""

_LEAST_BYTES = 80
"""Shorter bags hold no signature and request."""

_MOST_MESSAGES = 255
"""Most messages that one run of a contract can send. TVM: c5 holds at most 255 actions."""


class KeyChange(NamedTuple):
    """The request that gives a wallet another key."""

    new_public_key: str
    rotation_signature: str
    encrypted_old_private_key: str


def find_opcode(message: Message) -> int | None:
    """Return the opcode of a call: the one behind a signature if it is that of a request."""
    boc = message.boc
    if boc is None or len(boc) < _LEAST_BYTES or not any(digits in boc for digits in _DIGITS):
        return message.opcode
    try:
        opcode = message.body().skip(SIGNATURE_BITS).peek_opcode()
    except UNREADABLE:
        return message.opcode
    return opcode if opcode in _BEHIND_SIGNATURE else message.opcode


def is_gasless(message: Message, opcode: int | None) -> bool:
    """Whether a call brings a signed request to a wallet, so that its sender pays for it."""
    return message.source is not None and opcode in _GASLESS


def read_key_change(message: Message) -> KeyChange:
    """Read the request for another key. TL-B: tg_wallet_change_key_internal, _external.

    Raises:
        ActionUnreadable, BocError: the body is another.
    """
    body = message.body().skip(SIGNATURE_BITS)
    if body.uint(32) not in {CHANGE_KEY, CHANGE_KEY_EXTERNAL}:
        raise ActionUnreadable("the body is no request for another key")
    key = body.skip(_HEAD_BITS).hex(256)
    return KeyChange(key, body.ref().hex(SIGNATURE_BITS), body.ref().hex(256))


def list_requested(body: Body) -> Iterator[int]:
    """Yield the cells of the messages that a request to a Telegram wallet is to send.

    Raises:
        ActionUnreadable, BocError: the body is another.
    """
    opcode = body.skip(SIGNATURE_BITS).uint(32)
    place = body.skip(_HEAD_BITS).rest()
    if opcode in {SEND_ONE, SEND_ONE_EXTERNAL}:
        body.skip(8)
        yield place.load_ref()
    elif opcode in {SEND_BULK, SEND_BULK_EXTERNAL}:
        body.skip(8)
        yield from _list_chunks(body.maybe_ref())
    elif opcode not in _BEHIND_SIGNATURE:
        raise ActionUnreadable("the body is no request to a Telegram wallet")


def _list_chunks(chunk: Body | None) -> Iterator[int]:
    """Yield the messages of a chain of chunks: Maybe ^next, then pairs of mode and message."""
    count = 0
    while chunk is not None and count < _MOST_MESSAGES:
        following = chunk.maybe_ref()
        while chunk.refs_left and count < _MOST_MESSAGES:
            chunk.skip(8)
            count += 1
            yield chunk.rest().load_ref()
        chunk = following
