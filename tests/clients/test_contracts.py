"""The client toncenter reads the demo node's tokens, names and wallets from version 3."""

from typing import Any

import pytest
from toncenter.rest.client import ToncenterRestClient

from tests.api.v3.genuine import to_raw
from tests.conftest import Facts

pytestmark = pytest.mark.usefixtures("tvm")


def _list(facts: Facts, kind: str) -> list[dict[str, Any]]:
    return [item for item in facts.summary["contracts"] if item["kind"] == kind]


async def test_jettons(server: str, facts: Facts) -> None:
    async with ToncenterRestClient(base_url=server, rps_limit=0) as client:
        v3: Any = client.v3
        masters = await v3.jettons.get_jetton_masters(limit=100)
        wanted = {to_raw(item["address"]) for item in _list(facts, "jetton_master")}
        assert {master.address for master in masters.jetton_masters} == wanted
        assert wanted <= set(masters.metadata.root)
        for item in _list(facts, "jetton_wallet"):
            owner, jetton = to_raw(item["owner"]), to_raw(item["master"])
            found = await v3.jettons.get_jetton_wallets(
                owner_address=[owner], jetton_address=[jetton]
            )
            (wallet,) = found.jetton_wallets
            assert wallet.address == to_raw(item["address"])
            assert wallet.balance == item["get_methods"]["get_wallet_data"]["stack"][0]["int"]
            moved = await v3.jettons.get_jetton_transfers(
                owner_address=[owner], jetton_master=jetton
            )
            assert all(owner in (move.source, move.destination) for move in moved.jetton_transfers)
        burns = await v3.jettons.get_jetton_burns(limit=5)
        assert isinstance(burns.jetton_burns, list)


async def test_nfts_and_names(server: str, facts: Facts) -> None:
    async with ToncenterRestClient(base_url=server, rps_limit=0) as client:
        v3: Any = client.v3
        (collection,) = _list(facts, "nft_collection")
        found = await v3.nfts.get_nft_items(
            collection_address=[to_raw(collection["address"])], limit=100
        )
        wanted = {to_raw(item["address"]) for item in _list(facts, "nft_item")}
        assert {item.address for item in found.nft_items} == wanted
        indexes = [int(item.index) for item in found.nft_items]
        assert indexes == sorted(indexes)
        assert all(item.collection.address == item.collection_address for item in found.nft_items)
        collections = await v3.nfts.get_nft_collections()
        assert len(collections.nft_collections) == 2
        transfers = await v3.nfts.get_nft_transfers(limit=5)
        assert all(move.nft_address for move in transfers.nft_transfers)
        for item in _list(facts, "dns_item"):
            (record,) = (await v3.dns.get_dns_records(domain=item["domain"])).records
            assert record.nft_item_address == to_raw(item["address"])


async def test_accounts(server: str, facts: Facts) -> None:
    async with ToncenterRestClient(base_url=server, rps_limit=0) as client:
        v3: Any = client.v3
        wallets = [to_raw(item["address"]) for item in _list(facts, "wallet_v5r1")]
        states = await v3.accounts.get_wallet_states(wallets)
        assert all(wallet.is_wallet for wallet in states.wallets)
        book = await v3.accounts.get_address_book(wallets)
        assert {tuple(row.interfaces) for row in book.root.values()} == {("wallet_v5r1",)}
        (master, *_others) = _list(facts, "jetton_master")
        metadata = await v3.accounts.get_metadata([to_raw(master["address"])])
        (info,) = metadata.root[to_raw(master["address"])].token_info
        assert (info.type, info.valid) == ("jetton_masters", True)
        pending = await v3.actions.get_pending_traces(account=wallets[0])
        assert pending.traces == []
        nobody = await v3.multisig.get_multisig_wallets(address=wallets)
        assert nobody.multisigs == []
        assert (
            await v3.vesting.get_vesting_contracts(contract_address=wallets)
        ).vesting_contracts == []
