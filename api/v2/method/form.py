"""Converts addresses and hashes between their forms, without a lake."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tonlake.api.text.address import render_friendly, render_raw
from tonlake.api.v2.value import render_base64

if TYPE_CHECKING:
    from tonlake.api.text.address import WrittenAddress
    from tonlake.api.v2.arguments import HashParams, NoParams, TextParams


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


def answer_healthcheck(params: NoParams) -> str:
    """healthcheck: the service is up and can open the lake."""
    del params
    return "OK"
