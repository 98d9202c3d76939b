"""Wallets known by their code: which kind a code hash stands for, and how its data begins.

Data layouts, of which only the beginning is read: seqno:uint32 (v1, v2); seqno:uint32
wallet_id:int32 (v3, v4); signature_allowed:Bool seqno:uint32 wallet_id:int32 (v5, whose beta
has a longer id that begins with these bits).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from ingest.cell.boc import BocError, parse_boc

if TYPE_CHECKING:
    from ingest.cell.slice import CellSlice

_WORD_BITS = 32


class WalletKind(msgspec.Struct, frozen=True):
    """A kind of wallet: its name as the API says it, and what stands in its data."""

    name: str
    has_wallet_id: bool = True
    has_signature_flag: bool = False


class WalletData(msgspec.Struct, frozen=True):
    """What a wallet's data says; None where its kind does not keep it."""

    seqno: int
    wallet_id: int | None = None
    is_signature_allowed: bool | None = None


_PLAIN = {"has_wallet_id": False}
_SIGNED = {"has_signature_flag": True}
_TABLE: tuple[tuple[str, str, dict[str, bool]], ...] = (
    ("wallet v1 r1", "oM/CxIruFqJx8s/AtzgtgXVs7LEBfQd/qqs7tgL2how=", _PLAIN),
    ("wallet v1 r2", "1JAvzJ+tdGmPqONTIgpo2g3PcuMryy657gQhfBfTBiw=", _PLAIN),
    ("wallet v1 r3", "WHzHie/xyE9G7DeX5F/ICaFP9a4k8eDHpqmcydyQYf8=", _PLAIN),
    ("wallet v2 r1", "XJpeaMEI4YchoHxC+ZVr+zmtd+xtYktgxXbsiO7mUyk=", _PLAIN),
    ("wallet v2 r2", "/pUw0yQ4Uwg+8u8LTCkIwKv2+hwx6iQ6rKpb+MfXU/E=", _PLAIN),
    ("wallet v3 r1", "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE=", {}),
    ("wallet v3 r2", "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk=", {}),
    ("wallet v4 r1", "ZN1UgFUixb6KnbWc6gEFzPDQh4bKeb64y3nogKjXMi0=", {}),
    ("wallet v4 r2", "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA=", {}),
    ("wallet v5 beta", "89fKU0k97trCizgZhqhJQDy6w9LFhHea8IEGWvCsS5M=", _SIGNED),
    ("wallet v5 r1", "IINLe3KxEhR+Gy+0V7hOdNGjDwT3N9T2KmaOlVLSty8=", _SIGNED),
)
WALLETS: dict[bytes, WalletKind] = {
    base64.b64decode(code_hash): WalletKind(name, **flags) for name, code_hash, flags in _TABLE
}
"""Kinds of wallets by code hash."""


def read_wallet_data(kind: WalletKind, data: bytes) -> WalletData | None:
    """Read the beginning of a wallet's data.

    Args:
        kind: What its code hash says it is.
        data: Its data cell as bag of cells.

    Returns:
        None where the data is too short, or an exotic cell: such a wallet cannot work.
    """
    try:
        tree = parse_boc(data)
        return _read(kind, tree.slice(tree.roots[0]))
    except BocError:
        return None


def _read(kind: WalletKind, start: CellSlice) -> WalletData:
    allowed = start.load_bit() if kind.has_signature_flag else None
    seqno = start.load_uint(_WORD_BITS)
    wallet_id = start.load_int(_WORD_BITS) if kind.has_wallet_id else None
    return WalletData(seqno, wallet_id, allowed)
