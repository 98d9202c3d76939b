"""Jettons (TEP-74, TEP-89 by get_wallet_address): masters and wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.stack import (
    Address,
    Finding,
    Mismatch,
    Question,
    Results,
    address_fields,
)
from tonlake.ingest.derive.contract.standard.content import read_content
from tonlake.lake.schema.contract import JETTON_MASTERS, JETTON_WALLETS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.stack import Detection


def detect_master(me: Address) -> Detection:
    """Ask get_jetton_data: total supply, mintable flag, administrator, content, wallet code."""
    answer = Results((yield Question(me, "get_jetton_data")), 5)
    supply, mintable, admin = answer.amount(), answer.boolean(), answer.address()
    content, wallet_code = answer.cell(), answer.cell()
    fields = {
        "total_supply": supply,
        "mintable": mintable,
        **address_fields("admin", admin),
        "content": read_content(content.tree, content.root),
        "wallet_code_hash": wallet_code.hash,
    }
    return [Finding(JETTON_MASTERS.name, fields)]


def detect_wallet(me: Address) -> Detection:
    """Ask get_wallet_data of a wallet, and get_wallet_address of its master.

    For wallets of mintless jettons, is_claimed shows whether the airdrop was claimed.
    """
    answer = Results((yield Question(me, "get_wallet_data")), 4)
    balance, owner, jetton = answer.amount(), answer.required_address(), answer.required_address()
    answer.cell()
    named = Results((yield Question(jetton, "get_wallet_address", (owner.slice(),))), 1)
    if named.address() != me:
        raise Mismatch("the master returns another wallet")
    claimed = yield Question(me, "is_claimed", required=False)
    fields = {
        "balance": balance,
        **address_fields("owner", owner),
        **address_fields("jetton", jetton),
        "is_claimed": None if claimed is None else Results(claimed, 1).boolean(),
    }
    return [Finding(JETTON_WALLETS.name, fields)]
