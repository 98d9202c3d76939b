"""Jettons (TEP-74, and TEP-89 by its get_wallet_address): masters and wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.detection import Finding, Question, address_fields
from tonlake.ingest.derive.contract.stack import Mismatch, Results
from tonlake.ingest.derive.contract.standard.content import read_content
from tonlake.lake.schema.contract import JETTON_MASTERS, JETTON_WALLETS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.detection import Detection
    from tonlake.ingest.derive.contract.stack import Address


def detect_master(me: Address) -> Detection:
    """Ask get_jetton_data: supply, whether it is mintable, administrator, content, wallet code."""
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

    Wallets of mintless jettons tell by is_claimed whether the airdrop was taken.
    """
    answer = Results((yield Question(me, "get_wallet_data")), 4)
    balance, owner, jetton = answer.amount(), answer.sure_address(), answer.sure_address()
    answer.cell()
    told = Results((yield Question(jetton, "get_wallet_address", (owner.slice(),))), 1)
    if told.address() != me:
        raise Mismatch("the master names another wallet")
    claimed = yield Question(me, "is_claimed", required=False)
    fields = {
        "balance": balance,
        **address_fields("owner", owner),
        **address_fields("jetton", jetton),
        "is_claimed": None if claimed is None else Results(claimed, 1).boolean(),
    }
    return [Finding(JETTON_WALLETS.name, fields)]
