"""Get-methods of known codes, answered from the data cell as the code itself would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.standard import jetton_data, nft_data, order_data

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.layout import Reader

READERS: dict[tuple[bytes, str], Reader] = {
    (bytes.fromhex(code_hash), method): reader
    for module in (jetton_data, nft_data, order_data)
    for (code_hash, method), reader in module.READERS.items()
}
"""By code hash of the account (that of a library cell where the code is one), and method."""


def find_reader(code_hash: bytes, method: str) -> Reader | None:
    """Return what answers a method of a code, if it is known."""
    return READERS.get((code_hash, method))


def list_readable(code_hash: bytes) -> list[str]:
    """Return the methods of a code that can be answered from its data."""
    return [method for code, method in READERS if code == code_hash]
