"""Readers of data cells: what answers get-methods of codes that are known, without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.stack import Mismatch
from tonlake.ingest.derive.contract.standard import jetton, multisig, nft_data
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.layout import Reader, Subject
    from tonlake.ingest.derive.contract.stack import Value

READERS: dict[tuple[bytes, str], Reader] = {
    (bytes.fromhex(code_hash), method): reader
    for module in (jetton, nft_data, multisig)
    for (code_hash, method), reader in module.READERS.items()
}
"""By code hash of the account (that of a library cell where the code is one), and method."""


def read_answer(reader: Reader, subject: Subject) -> list[Value] | None:
    """Return what a reader finds; None where the data are not as the code has them."""
    try:
        return reader(subject)
    except (BocError, Mismatch):
        return None


def find_reader(code_hash: bytes, method: str) -> Reader | None:
    """Return what answers a method of a code, if it is known."""
    return READERS.get((code_hash, method))


def list_readable(code_hash: bytes) -> list[str]:
    """Return the methods of a code that can be answered from its data."""
    return [method for code, method in READERS if code == code_hash]
