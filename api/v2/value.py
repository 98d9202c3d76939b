"""Values and small objects in the form of version 2, and the methods that only convert them.

Hashes and bags of cells are standard base64, 64-bit numbers are decimal text, addresses are
friendly, bounceable and url-safe, and absent values are empty strings.
"""

import base64
from collections.abc import Mapping
from typing import Any

from tonlake.api.chain.arguments import HashParams, Params, TextParams
from tonlake.api.chain.cells import add_checksum
from tonlake.api.text.encoding import (
    Address,
    WrittenAddress,
    decode_currencies,
    encode_bytes,
    render_friendly,
    render_raw,
)


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


def answer_detect_address(params: TextParams) -> dict[str, Any]:
    """detectAddress: all forms of an address, and the detected one."""
    written = params.address
    if written.friendly:
        form_name = "friendly_bounceable" if written.bounceable else "friendly_non_bounceable"
    else:
        form_name = "raw_form"
    return {
        "@type": "ext.utils.detectedAddress",
        "raw_form": f"{written.address.workchain}:{written.address.account.hex()}",
        "bounceable": _render_variant(written, bounceable=True),
        "non_bounceable": _render_variant(written, bounceable=False),
        "given_type": form_name,
        "test_only": written.test_only,
    }


def _render_variant(written: WrittenAddress, *, bounceable: bool) -> dict[str, str]:
    url_safe = render_friendly(written.address, bounceable=bounceable, test_only=written.test_only)
    return {
        "@type": "ext.utils.detectedAddressVariant",
        "b64": url_safe.replace("-", "+").replace("_", "/"),
        "b64url": url_safe,
    }


def answer_detect_hash(params: HashParams) -> dict[str, str]:
    """detectHash: all forms of a hash; the url-safe one is without padding."""
    return {
        "@type": "ext.utils.detectedHash",
        "b64": render_base64(params.hash),
        "b64url": base64.urlsafe_b64encode(params.hash).decode("ascii").rstrip("="),
        "hex": params.hash.hex(),
    }


def answer_pack_address(params: TextParams) -> str:
    """packAddress: user-friendly form; keeps flags, raw addresses become bounceable."""
    written = params.address
    return render_friendly(
        written.address,
        bounceable=written.bounceable or not written.friendly,
        test_only=written.test_only,
    )


def answer_unpack_address(params: TextParams) -> str:
    """unpackAddress: the raw form."""
    return render_raw(params.address.address.workchain, params.address.address.account)


def answer_healthcheck(_params: Params) -> str:
    """healthcheck: the service is up and can open the lake."""
    return "OK"
