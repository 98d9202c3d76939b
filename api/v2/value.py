"""Values and small objects in the form of version 2.

Hashes and bags of cells are standard base64, 64-bit numbers are decimal text, addresses are
friendly, bounceable and url-safe, and absent values are empty strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.cells import add_checksum
from tonlake.api.text.address import Address, render_friendly
from tonlake.api.text.encoding import decode_currencies, encode_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping


def render_base64(data: bytes | None) -> str:
    """Write bytes as standard base64; "" for None."""
    return "" if data is None else encode_bytes(data)


def render_boc(boc: bytes | None) -> str:
    """Write a bag of cells with a checksum as base64; "" for None."""
    return "" if boc is None else encode_bytes(add_checksum(boc))


def render_address(workchain: int | None, account: bytes | None) -> str:
    """Write a friendly address; "" for None."""
    if workchain is None or account is None:
        return ""
    return render_friendly(Address(workchain, account), bounceable=True, test_only=False)


def render_account(workchain: int | None, account: bytes | None) -> dict[str, str]:
    """Return an ``accountAddress``."""
    return {"@type": "accountAddress", "account_address": render_address(workchain, account)}


def render_block_id(
    workchain: int, shard: int, seqno: int, root_hash: bytes, file_hash: bytes
) -> dict[str, Any]:
    """Return a ``ton.blockIdExt``."""
    return {
        "@type": "ton.blockIdExt",
        "workchain": workchain,
        "shard": str(shard),
        "seqno": seqno,
        "root_hash": render_base64(root_hash),
        "file_hash": render_base64(file_hash),
    }


def render_block_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``ton.blockIdExt`` of a row with the columns of a block's identity."""
    columns = ("workchain", "shard", "seqno", "root_hash", "file_hash")
    return render_block_id(*(row[name] for name in columns))


def render_transaction_id(lt: int, tx_hash: bytes) -> dict[str, str]:
    """Return an ``internal.transactionId``."""
    return {"@type": "internal.transactionId", "lt": str(lt), "hash": render_base64(tx_hash)}


def render_currencies(text: str | None) -> list[dict[str, Any]]:
    """Return ``extraCurrency`` objects, by id, from a column that maps ids to amounts."""
    amounts = decode_currencies(text)
    return [
        {"@type": "extraCurrency", "id": number, "amount": amounts[str(number)]}
        for number in sorted(map(int, amounts))
    ]
