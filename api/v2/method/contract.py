"""Contracts that ``getExtendedAddressInformation`` knows by their code.

The data of each begins with 32-bit numbers, as tonlib's get-methods give them; contracts whose
answer needs more than the beginning of the data are shown as raw states.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from tonlake.api.v2.value import render_base64, render_boc
from tonlake.ingest.decode.cell.boc import BocError, parse_boc

_WORD_BITS = 32


class ContractKind(msgspec.Struct, frozen=True):
    """A tag of tonlib, the revision of the code, and the numbers that its data begins with."""

    tag: str
    revision: int
    numbers: tuple[str, ...]


_V3 = ("wallet.v3.accountState", ("seqno", "wallet_id"))
_V4 = ("wallet.v4.accountState", ("seqno", "wallet_id"))
_HIGHLOAD_V1 = ("wallet.highload.v1.accountState", ("seqno", "wallet_id"))
_HIGHLOAD_V2 = ("wallet.highload.v2.accountState", ("wallet_id",))
_DNS = ("dns.accountState", ("wallet_id",))
_KINDS = {
    "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE=": (*_V3, 1),
    "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk=": (*_V3, 2),
    "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA=": (*_V4, 2),
    "2M27t58sXKpnesRQdwvgNRviHhJQSG3oXMUqoz3RZIQ=": (*_HIGHLOAD_V1, 1),
    "NowDly5fTCRBK4GGUt4d4qJjDRwBFgmZnf90X7NoSa0=": (*_HIGHLOAD_V1, 2),
    "jOtFs81LXMYOquHBO5wJI5Jnf+U2sumy2AG2Lv+TH+E=": (*_HIGHLOAD_V2, 1),
    "CzqIeurNKn1Au1VQvJJTFWoCkGWu+21rWDc11Y2p1b4=": (*_HIGHLOAD_V2, 2),
    "oNZ9LeiRn+e3yndlLM1P3FbGid56aRYeRfsNzF5HwVU=": (*_DNS, 1),
}
CONTRACTS: dict[bytes, ContractKind] = {
    base64.b64decode(key): ContractKind(tag, revision, numbers)
    for key, (tag, numbers, revision) in _KINDS.items()
}
"""Kinds by code hash."""


def describe_contract(
    code_hash: bytes | None,
    *,
    code: bytes | None,
    data: bytes | None,
    frozen_hash: bytes | None,
) -> tuple[dict[str, Any], int]:
    """Return the ``account_state`` object and the revision of a contract."""
    if code_hash is None:
        tag = "uninited.accountState"
        return {"@type": tag, "frozen_hash": render_base64(frozen_hash)}, 0
    kind = CONTRACTS.get(code_hash)
    numbers = None if kind is None or data is None else _read_numbers(kind, data)
    if kind is not None and numbers is not None:
        return {"@type": kind.tag, **numbers}, kind.revision
    raw = {"code": render_boc(code), "data": render_boc(data), "frozen_hash": ""}
    return {"@type": "raw.accountState", **raw}, 0


def _read_numbers(kind: ContractKind, data: bytes) -> dict[str, int] | None:
    """Read the first numbers of the data; None where it is too short or an exotic cell."""
    try:
        tree = parse_boc(data)
        start = tree.slice(tree.roots[0])
        return {
            name: start.load_int(_WORD_BITS) if name == "wallet_id" else start.load_uint(_WORD_BITS)
            for name in kind.numbers
        }
    except BocError:
        return None
