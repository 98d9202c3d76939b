"""Reads the validators of the masterchain, and verifies their signatures.

TL-B: validators#11, validators_ext#12 (config param 34, or 35 if there are temporary ones),
validator#53, validator_addr#73, ed25519_pubkey#8e81278a. The signed bytes are the TL object
ton.blockId with both hashes, or a vote of Simplex consensus (``simplex``).
Key blocks name the validators of the blocks after them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tonlake.ingest.decode.block.header import check_tag
from tonlake.ingest.decode.block.proof import check_proof
from tonlake.ingest.decode.block.shard import read_mc_extra
from tonlake.ingest.decode.block.state import read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap, iter_hashmap_slice
from tonlake.ingest.errors import BocError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tonlake.ingest.blocks import BlockId, RawBlock
    from tonlake.ingest.decode.block.proof import SignatureSet
    from tonlake.ingest.decode.block.simplex import SimplexVote
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree

SIGNED_TAG, KEY_TAG = bytes.fromhex("706e0bc5"), bytes.fromhex("c6b41348")
_TEMPORARY, _CURRENT = 35, 34
_PARAM_BITS, _INDEX_BITS = 32, 16
_VALIDATORS, _VALIDATORS_EXT = 0x11, 0x12
_VALIDATOR_TAGS, _PUBLIC_KEY_TAG = (0x53, 0x73), 0x8E81278A


class ProofInvalid(Exception):
    """Signatures, or a link between blocks, prove nothing; the message says why."""


class Validator(NamedTuple):
    """A validator of the masterchain: its public key and its weight."""

    key: bytes
    weight: int


def check_signatures(
    target: BlockId,
    validators: Iterable[Validator],
    signatures: Iterable[tuple[bytes, bytes]],
    vote: SimplexVote | None = None,
) -> int:
    """Verify that more than two thirds of the validators, by weight, signed a block.

    ``vote`` is what they signed in Simplex consensus; without it, they signed the block's id.

    Returns:
        The weight of the signers.

    Raises:
        ProofInvalid: a signature is wrong, unknown or repeated, or the weight is too low.
    """
    by_id = {hashlib.sha256(KEY_TAG + one.key).digest(): one for one in validators}
    total = sum(one.weight for one in by_id.values())
    message = SIGNED_TAG + target.root_hash + target.file_hash
    if vote is not None:
        try:
            vote.check(target)
        except DecodeError as error:
            raise ProofInvalid(f"{target}: {error}") from error
        message = vote.message()
    weight = 0
    for node_id, signature in signatures:
        validator = by_id.pop(node_id, None)
        if validator is None:
            raise ProofInvalid(f"{target} is signed by {node_id.hex()}, not one of its validators")
        try:
            VerifyKey(validator.key).verify(message, signature)
        except (BadSignatureError, ValueError, TypeError) as error:
            raise ProofInvalid(f"a signature of {target} is wrong") from error
        weight += validator.weight
    if weight * 3 <= total * 2:
        raise ProofInvalid(f"{target} is signed by {weight} of {total}, not by two thirds")
    return weight


def check_signature_set(
    target: BlockId, validators: Sequence[Validator], found: SignatureSet
) -> None:
    """Verify the signatures in the proof of a block, and the weight that it declares.

    Raises:
        ProofInvalid: as ``check_signatures``, or the weight is another.
    """
    signed = ((one.node_id_short, one.signature) for one in found.signatures)
    weight = check_signatures(target, validators, signed, found.vote)
    if weight != found.weight:
        raise ProofInvalid(
            f"the signatures of {target} have weight {weight}, but declare {found.weight}"
        )


def read_validators(tree: CellTree, known: BlockId) -> list[Validator]:
    """Return the masterchain's validators according to a key block or the zero state.

    Raises:
        DecodeError, BocError: the tree is neither, or does not contain them.
    """
    if known.seqno:
        config = read_mc_extra(tree).config
    else:
        config = read_config(tree, read_state(tree, tree.roots[0]))
    if config is None:
        raise DecodeError("it has no configuration")
    params = dict(iter_hashmap(tree, config, _PARAM_BITS, skip_pruned=True))
    value = params.get(_TEMPORARY) or params.get(_CURRENT)
    if value is None:
        raise DecodeError("its configuration has no validators")
    start = tree.slice(value.load_ref())
    tag = start.load_uint(8)
    if tag not in (_VALIDATORS, _VALIDATORS_EXT):
        raise DecodeError(f"validators have the unknown form {tag:02x}")
    start.skip(32 + 32 + 16)  # utime_since, utime_until, total
    main = start.load_uint(16)
    if tag == _VALIDATORS:
        listed = iter_hashmap_slice(start, _INDEX_BITS)
    else:
        start.skip(64)  # total_weight
        root = start.load_maybe_ref()
        listed = iter(()) if root is None else iter_hashmap(tree, root, _INDEX_BITS)
    # Shuffling changes the order of validators, not which ones they are.
    return [_read_validator(one) for index, one in listed if index < main]


def _read_validator(cell: CellSlice) -> Validator:
    tag = cell.load_uint(8)
    if tag not in _VALIDATOR_TAGS:
        raise DecodeError(f"a validator has the unknown form {tag:02x}")
    check_tag(cell, 32, _PUBLIC_KEY_TAG, "public key")
    return Validator(cell.load_bytes(32), cell.load_uint(64))


KEYS_KEPT = 4


class Signers:
    """Validators by key block, each read once; verifies their signatures."""

    def __init__(self, read_key_block: Callable[[int], RawBlock | None]) -> None:
        """Start empty.

        ``read_key_block`` returns a verified masterchain block by seqno, the zero state for 0;
        None if the source does not have it.
        """
        self._read_key_block = read_key_block
        self._validators: dict[int, list[Validator] | None] = {}

    def forget(self) -> None:
        """Read key blocks again, for example after a roll-back."""
        self._validators.clear()

    def check(self, block: RawBlock, key_seqno: int) -> bool:
        """Verify the signatures in the proof of a masterchain block, if it has any.

        They must be from the validators named by key block ``key_seqno``; if that block is missing,
        only the form of the proof is checked.

        Returns:
            Whether the signatures were verified.

        Raises:
            DecodeError, BocError: see ``check_proof``; or a signature is invalid.
        """
        if block.proof is None:
            return False
        found = check_proof(block.proof, block.id)
        validators = self._find(key_seqno)
        if found is None or validators is None:
            return False
        try:
            check_signature_set(block.id, validators, found)
        except ProofInvalid as error:
            raise DecodeError(str(error)) from error
        return True

    def _find(self, key_seqno: int) -> list[Validator] | None:
        if key_seqno not in self._validators:
            if len(self._validators) >= KEYS_KEPT:
                self._validators.clear()
            self._validators[key_seqno] = self._read(key_seqno)
        return self._validators[key_seqno]

    def _read(self, key_seqno: int) -> list[Validator] | None:
        block = self._read_key_block(key_seqno)
        if block is None:
            return None
        try:
            return read_validators(parse_boc(block.data, check_crc=False), block.id)
        except (BocError, DecodeError):
            return None  # reported when that block is read
