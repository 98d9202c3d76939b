"""Decoded bodies give the same bag again: those of a network, and those that SDKs build."""

from pathlib import Path
from typing import Any

import pytest
from ton_core import Address, begin_cell
from ton_core.contrib.contracts.dns import tlb as dns
from ton_core.contrib.contracts.jetton import tlb as jettons
from ton_core.contrib.contracts.nft import tlb as nfts
from ton_core.contrib.contracts.telegram import tlb as telegram
from ton_core.contrib.contracts.wallet import tlb as wallets

from tests.ingest.derive.body.encode import rebuild
from tests.ingest.derive.body.test_reports import list_actions, send
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body.body import decode_body
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

OWNER = Address("0:" + "11" * 32)
BODIES = "select distinct body, kind = 'ext_in' from messages where body is not null"


def check(boc: bytes, *, external_in: bool) -> str | None:
    """Return the type of a body that is built again; None if it is not decoded."""
    tree = parse_boc(boc)
    value: Any = decode_body(tree, tree.roots[0], external_in=external_in).value
    if value is None or value == {"@type": "empty_cell"}:
        return None
    target = CellBuilder()
    again = rebuild(value, target.tree)
    assert target.tree.hash(again) == tree.hash(tree.roots[0]), value
    name: str = value["@type"]
    return name


def test_bodies_of_the_demo_network(demo_lake: Path) -> None:
    rows = connect(open_snapshot(demo_lake)).sql(BODIES).fetchall()
    found = [check(body, external_in=external_in) for body, external_in in rows]
    names = {name for name in found if name is not None}
    assert len(names) > 20
    assert found.count(None) < len(found) / 20


def comment(text: str) -> Any:
    return wallets.TextCommentBody(text).serialize()


SDK_BODIES = [
    (jettons.JettonTransferBody(OWNER, 5, OWNER), "jetton_transfer"),
    (
        jettons.JettonTransferBody(OWNER, 5, None, comment("a"), comment("b" * 300), 7, 9),
        "jetton_transfer",
    ),
    (jettons.JettonInternalTransferBody(5, 0), "jetton_internal_transfer"),
    (
        jettons.JettonInternalTransferBody(5, 1, OWNER, OWNER, comment("hi"), 3),
        "jetton_internal_transfer",
    ),
    (jettons.JettonBurnBody(5, OWNER), "jetton_burn"),
    (jettons.JettonBurnBody(1 << 100, None, comment("x"), 1), "jetton_burn"),
    (jettons.JettonChangeAdminBody(OWNER, 4), "jetton_change_admin"),
    (jettons.JettonTopUpBody(4), "top_up"),
    (dns.DNSBalanceReleaseBody(4), "dns_balance_release"),
    (nfts.NFTTransferBody(OWNER, OWNER, None, comment("nft"), 2), "nft_transfer"),
    (nfts.NFTTransferBody(OWNER), "nft_transfer"),
    (nfts.NFTDestroyBody(1), "sbt_destroy"),
    (nfts.NFTRevokeBody(1), "sbt_revoke"),
    (telegram.TeleItemCancelAuctionBody(6), "teleitem_msg_cancel_auction"),
    (
        telegram.TeleItemStartAuctionBody(
            telegram.TeleItemAuctionConfig(OWNER, 10**9, 10**10, 5, 3600, 604800), 6
        ),
        "teleitem_msg_start_auction",
    ),
    (wallets.TextCommentBody("naïve 🙂" * 60), "text_comment"),
    (
        wallets.EncryptedTextCommentBody(bytes(32), bytes(16), bytes(range(200))),
        "encrypted_text_comment",
    ),
    (wallets.WalletTgKeyChangedBody(bytes(32)), "tg_wallet_key_changed"),
]


@pytest.mark.parametrize(("body", "name"), SDK_BODIES)
def test_bodies_that_an_sdk_builds(body: Any, name: str) -> None:
    assert check(body.serialize().to_boc(), external_in=False) == name


def test_requests_of_highload_wallets() -> None:
    actions = list_actions([send(number) for number in range(3)])
    request = begin_cell().store_uint(0xAE42E5A4, 32).store_uint(1, 64).store_ref(actions)
    assert check(request.end_cell().to_boc(), external_in=False) == "highload_v3_internal_request"
