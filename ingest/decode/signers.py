"""Who may sign masterchain blocks, by the key blocks that name the validators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.proof import check_proof
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.blocks import RawBlock
    from tonlake.ingest.decode.block.validator import Validator

KEYS_KEPT = 4


class Signers:
    """Validators by key block, each read once; verifies what they signed."""

    def __init__(self, read_key_block: Callable[[int], RawBlock | None]) -> None:
        """Begin with none.

        ``read_key_block`` returns a checked masterchain block by seqno, as 0 the zero state, and
        None where the source lacks it.
        """
        self._read_key_block = read_key_block
        self._validators: dict[int, list[Validator] | None] = {}

    def forget(self) -> None:
        """Read key blocks again, as after a roll-back."""
        self._validators.clear()

    def check(self, block: RawBlock, key_seqno: int) -> bool:
        """Verify the signatures in the proof of a masterchain block, if it has any.

        They are those of the validators whom the key block ``key_seqno`` names; without that
        block the form of the proof alone is checked.

        Returns:
            Whether the signatures were verified.

        Raises:
            DecodeError, BocError: as ``check_proof``; a signature is wrong or of no validator.
        """
        if block.proof is None:
            return False
        found = check_proof(block.proof, block.id)
        validators = self._find(key_seqno)
        if found is None or validators is None:
            return False
        # It takes a tenth of a second to load, which other commands do without.
        from tonlake.ingest.decode.block.validator import (  # noqa: PLC0415
            ProofInvalid,
            check_signatures,
        )

        signed = ((one.node_id_short, one.signature) for one in found.signatures)
        try:
            weight = check_signatures(block.id, validators, signed)
        except ProofInvalid as error:
            raise DecodeError(str(error)) from error
        if weight != found.weight:
            raise DecodeError(f"signatures of weight {weight} that claim {found.weight}")
        return True

    def _find(self, key_seqno: int) -> list[Validator] | None:
        if key_seqno not in self._validators:
            if len(self._validators) >= KEYS_KEPT:
                self._validators.clear()
            self._validators[key_seqno] = self._read(key_seqno)
        return self._validators[key_seqno]

    def _read(self, key_seqno: int) -> list[Validator] | None:
        from tonlake.ingest.decode.block.validator import read_validators  # noqa: PLC0415

        block = self._read_key_block(key_seqno)
        if block is None:
            return None
        try:
            return read_validators(parse_boc(block.data, check_crc=False), block.id)
        except (BocError, DecodeError):
            return None  # reported when that block is read
