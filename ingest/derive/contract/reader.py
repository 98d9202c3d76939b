"""Registry of readers: they answer get-methods of known codes from data cells."""

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
"""By code hash of the account (of the library cell if the code is one) and method."""


def read_answer(reader: Reader, subject: Subject) -> list[Value] | None:
    """Return a reader's answer; None if the data do not match the layout of the code."""
    try:
        return reader(subject)
    except (BocError, Mismatch):
        return None


def find_reader(code_hash: bytes, method: str) -> Reader | None:
    """Return the reader of a method of a code; None if there is none."""
    return READERS.get((code_hash, method))


def list_readable(code_hash: bytes) -> list[str]:
    """Return the methods of a code that readers answer."""
    return [method for code, method in READERS if code == code_hash]
