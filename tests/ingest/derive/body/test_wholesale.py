"""Decoded bodies give the same bag again: those of a network, and those that SDKs build."""

import asyncio
import csv
from base64 import b64decode
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ton_core import Address, DNSCategory, NetworkGlobalID, PrivateKey, begin_cell
from ton_core.contrib.contracts.dns import tlb as dns
from ton_core.contrib.contracts.jetton import tlb as jettons
from ton_core.contrib.contracts.nft import tlb as nfts
from ton_core.contrib.contracts.telegram import tlb as telegram
from ton_core.contrib.contracts.wallet import tlb as wallets
from tonutils.contracts.wallet import TONTransferBuilder, versions
from tonutils.types import ContractInfo

from tests.ingest.derive.body.encode import rebuild
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body.body import decode_body
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

OWNER = Address("0:" + "11" * 32)
DATA, MINT = begin_cell().store_uint(1, 9).end_cell(), jettons.JettonInternalTransferBody(5, 0)
ITEMS = [begin_cell().store_uint(number, 16).end_cell() for number in range(250)]
PACKAGES = Path(__file__).with_name("packages.csv")
"""Bodies of packages that the suite does not install, with the call that built each."""
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
    rows = connect(open_snapshot(demo_lake), statement=BODIES).sql(BODIES).fetchall()
    found = [check(body, external_in=external_in) for body, external_in in rows]
    names = {name for name in found if name is not None}
    assert len(names) > 20
    assert found.count(None) < len(found) / 20


RECORDS: list[Any] = [
    *(dns.DNSRecordDNSNextResolver(OWNER), dns.DNSRecordWallet(OWNER)),
    *(dns.DNSRecordStorage(bytes(32)), dns.DNSRecordSite(bytes(32))),
    *(dns.DNSRecordText("hello"), dns.DNSRecordText("naïve" * 60)),
]
TEXT = wallets.TextCommentBody("b" * 300).serialize()
SDK_BODIES = [
    (jettons.JettonTransferBody(OWNER, 5, OWNER), "jetton_transfer"),
    (jettons.JettonTransferBody(OWNER, 5, None, DATA, TEXT, 7, 9), "jetton_transfer"),
    (MINT, "jetton_internal_transfer"),
    (jettons.JettonInternalTransferBody(5, 1, OWNER, OWNER, TEXT, 3), "jetton_internal_transfer"),
    (jettons.JettonBurnBody(5, OWNER), "jetton_burn"),
    (jettons.JettonBurnBody(1 << 100, None, TEXT, 1), "jetton_burn"),
    (jettons.JettonChangeAdminBody(OWNER, 4), "jetton_change_admin"),
    (jettons.JettonTopUpBody(4), "top_up"),
    (jettons.JettonMintBody(OWNER, MINT, 6), "jetton_mint"),
    (jettons.JettonStandardMintBody(OWNER, MINT, 6), "minter_jetton_mint"),
    (jettons.JettonDiscoveryBody(OWNER, query_id=4), "provide_wallet_address"),
    (jettons.JettonUpgradeBody(DATA, DATA, 4), "jetton_upgrade"),
    (jettons.JettonDropAdminBody(4), "jetton_drop_admin"),
    (jettons.JettonClaimAdminBody(4), "jetton_claim_admin"),
    (jettons.JettonChangeContentBody(nfts.OffchainContent("https://a")), "jetton_change_content"),
    *(
        (dns.ChangeDNSRecordBody(DNSCategory.ALL, record, 4), "change_dns_record")
        for record in RECORDS
    ),
    (dns.ChangeDNSRecordBody(DNSCategory.WALLET, None, 4), "delete_dns_record"),
    (dns.DNSBalanceReleaseBody(4), "dns_balance_release"),
    (nfts.NFTCollectionMintItemBody(3, DATA, 5, 6), "nft_collection_mint"),
    (nfts.NFTCollectionBatchMintItemBody(ITEMS, 3, 5, 6), "nft_collection_batch_mint"),
    (nfts.NFTEditContentBody(nfts.OffchainItemContent("a.json"), 6), "nft_edit_content"),
    (nfts.NFTTransferEditorshipBody(OWNER, OWNER, DATA, DATA), "nft_transfer_editorship"),
    (nfts.NFTTransferBody(OWNER, OWNER, None, TEXT, 2), "nft_transfer"),
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


@pytest.mark.parametrize(
    ("version", "layout"),
    [
        *((f"V{of}", f"wallet_signed_v{of[0]}") for of in ("1R1", "1R3", "2R2", "3R2", "4R2")),
        *(("V5Beta", "w5_beta_external_signed_request"), ("V5R1", "w5_external_signed_request")),
        ("HighloadV2", "highload_wallet_signed_v2"),
        ("HighloadV3R1", "highload_wallet_signed_v3"),
        *(("PreprocessedV2", "preprocessed_wallet_signed_v2"), ("Tg", "tg_wallet_signed")),
    ],
)
def test_wallets_of_an_sdk(version: str, layout: str) -> None:
    client = mock.AsyncMock(network=NetworkGlobalID.MAINNET)
    client.get_info.return_value = ContractInfo(balance=0)
    made = getattr(versions, f"Wallet{version}").from_private_key(client, PrivateKey(bytes(32)))
    for count in {1, min(made.MAX_MESSAGES, 100)}:
        sent = [TONTransferBuilder(OWNER, number, "🙂", send_mode=3) for number in range(count)]
        body = asyncio.run(made.build_external_message(sent)).body
        assert check(body.to_boc(), external_in=True) == layout


def test_bodies_of_packages_that_are_not_installed() -> None:
    with PACKAGES.open() as file:
        for row in csv.DictReader(file):
            assert check(b64decode(row["body"]), external_in=True) == row["layout"], row["call"]
