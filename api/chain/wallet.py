"""Wallets known by their code, in the words of the API: the kinds whose seqno it tells."""

from __future__ import annotations

import base64

import msgspec

from tonlake.ingest.decode.cell.boc import BocError, parse_boc
from tonlake.ingest.derive.contract.standard.wallet import read_wallet


class WalletKind(msgspec.Struct, frozen=True):
    """A kind of wallet: its name as the API says it, and the hash of its code."""

    name: str
    code_hash: bytes


class WalletData(msgspec.Struct, frozen=True):
    """What a wallet's data says; None where its kind does not keep it."""

    seqno: int
    wallet_id: int | None = None
    is_signature_allowed: bool | None = None


_TABLE: tuple[tuple[str, str], ...] = (
    ("wallet v1 r1", "oM/CxIruFqJx8s/AtzgtgXVs7LEBfQd/qqs7tgL2how="),
    ("wallet v1 r2", "1JAvzJ+tdGmPqONTIgpo2g3PcuMryy657gQhfBfTBiw="),
    ("wallet v1 r3", "WHzHie/xyE9G7DeX5F/ICaFP9a4k8eDHpqmcydyQYf8="),
    ("wallet v2 r1", "XJpeaMEI4YchoHxC+ZVr+zmtd+xtYktgxXbsiO7mUyk="),
    ("wallet v2 r2", "/pUw0yQ4Uwg+8u8LTCkIwKv2+hwx6iQ6rKpb+MfXU/E="),
    ("wallet v3 r1", "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE="),
    ("wallet v3 r2", "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk="),
    ("wallet v4 r1", "ZN1UgFUixb6KnbWc6gEFzPDQh4bKeb64y3nogKjXMi0="),
    ("wallet v4 r2", "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA="),
    ("wallet v5 beta", "89fKU0k97trCizgZhqhJQDy6w9LFhHea8IEGWvCsS5M="),
    ("wallet v5 r1", "IINLe3KxEhR+Gy+0V7hOdNGjDwT3N9T2KmaOlVLSty8="),
)
WALLETS: dict[bytes, WalletKind] = {
    code_hash: WalletKind(name, code_hash)
    for name, code_hash in ((name, base64.b64decode(text)) for name, text in _TABLE)
}
"""Kinds of wallets by code hash; highload wallets and others without a seqno are not among them."""


def read_wallet_data(kind: WalletKind, data: bytes) -> WalletData | None:
    """Read a wallet's data.

    Args:
        kind: What its code hash says it is.
        data: Its data cell as bag of cells.

    Returns:
        None where the data is too short, or an exotic cell: such a wallet cannot work.
    """
    try:
        tree = parse_boc(data)
        found = read_wallet(kind.code_hash, tree.slice(tree.roots[0]))
    except BocError:
        return None
    if found is None or found["seqno"] is None:
        return None
    return WalletData(found["seqno"], found["wallet_id"], found["is_signature_allowed"])
