"""toncenter and tonutils, run against the served demo lake."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pytoniq_core import Address
from ton_core import NetworkGlobalID
from toncenter.exceptions import ToncenterError
from toncenter.rest.client import ToncenterRestClient
from tonutils.clients import ToncenterClient

from tests.api.recorded import list_calls, read_recorded, read_typed
from tests.api.v3.conftest import to_base64
from tests.conftest import Facts

SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"


@asynccontextmanager
async def open_toncenter(server: str) -> AsyncIterator[Any]:
    async with ToncenterRestClient(base_url=server, rps_limit=0) as client:
        yield client.v2


def open_tonutils(server: str) -> ToncenterClient:
    return ToncenterClient(NetworkGlobalID.MAINNET, base_url=f"{server}/api/v2", rps_limit=1000)


async def test_toncenter_accounts(server: str, facts: Facts) -> None:
    async with open_toncenter(server) as v2:
        for account in facts.accounts[::3]:
            address, balance = account["address"], str(account.get("balance", 0))
            assert await v2.accounts.get_address_balance(address) == balance
            info = await v2.accounts.get_address_information(address)
            assert info.balance == balance
            assert info.suspended is False
            extended = await v2.accounts.get_extended_address_information(address)
            assert extended.balance == balance
            wallet = await v2.accounts.get_wallet_information(address, seqno=200)
            assert wallet.account_state is not None
            assert await v2.accounts.get_address_state(address) == info.state


async def test_toncenter_history(server: str, facts: Facts) -> None:
    expected = [(str(r["lt"]), to_base64(r["hash"])) for r in facts.history(0, SHOP[2:])]

    async with open_toncenter(server) as v2:
        found: list[tuple[str, str]] = []
        start: dict[str, str] = {}
        while True:
            page = await v2.transactions.get_transactions_std(SHOP, limit=17, **start)
            found += [(tx.transaction_id.lt, tx.transaction_id.hash) for tx in page.transactions]
            start = {
                "lt": page.previous_transaction_id.lt,
                "hash": page.previous_transaction_id.hash,
            }
            if start["lt"] == "0":
                break
        assert found == expected
        whole = await v2.transactions.get_transactions(SHOP, limit=1000)
        assert [(tx.transaction_id.lt, tx.transaction_id.hash) for tx in whole] == expected
        message = next(tx.in_msg for tx in whole if tx.in_msg.source)
        ends = (message.source, message.destination, message.created_lt)
        for locate in (v2.transactions.try_locate_tx, v2.transactions.try_locate_result_tx):
            assert (await locate(*ends)).in_msg.hash == message.hash
        sender = await v2.transactions.try_locate_source_tx(*ends)
        assert message.hash in [sent.hash for sent in sender.out_msgs]


async def test_toncenter_blocks(server: str, facts: Facts) -> None:
    async with open_toncenter(server) as v2:
        assert (await v2.blocks.get_masterchain_info()).last.seqno == 238
        assert (await v2.blocks.get_consensus_block()).consensus_block == 238
        for row in facts.blocks[::25]:
            where = (row["workchain"], str(row["shard"]))
            root_hash = to_base64(row["root_hash"])
            for line in ({"seqno": row["seqno"]}, {"lt": str(row["end_lt"])}):
                assert (await v2.blocks.lookup_block(*where, **line)).root_hash == root_hash
            header = await v2.blocks.get_block_header(*where, row["seqno"])
            assert header.id.root_hash == root_hash
            ids = await v2.transactions.get_block_transactions(*where, row["seqno"])
            whole = await v2.transactions.get_block_transactions_ext(*where, row["seqno"])
            assert len(ids.transactions) == len(whole.transactions) == row["tx_count"]
        assert len((await v2.blocks.get_shards(238)).shards) == 2


async def test_toncenter_configuration_and_forms(server: str) -> None:
    friendly = Address(SHOP).to_str()

    async with open_toncenter(server) as v2:
        assert (await v2.configuration.get_config_param(15)).config.bytes
        assert (await v2.configuration.get_config_all(seqno=100)).config.bytes
        assert (await v2.configuration.get_libraries(["0" * 64, "1" * 64])).result == []
        assert (await v2.utils.detect_address(friendly)).raw_form == SHOP
        assert await v2.utils.pack_address(SHOP) == friendly
        assert (await v2.utils.unpack_address(friendly)).lower() == SHOP
        assert (await v2.utils.detect_hash("0" * 64)).hex == "0" * 64
        answer = await v2.rpc.json_rpc("getAddressState", params={"address": SHOP})
        assert "active" in str(answer)


@pytest.mark.usefixtures("tvm")
async def test_toncenter_get_methods(server: str, facts: Facts) -> None:
    async with open_toncenter(server) as v2:
        for _what, (body, answer) in list_calls(facts.summary):
            found = await v2.runmethod.run_get_method(**body)
            assert found.exit_code == answer["exit_code"]
            assert len(found.stack) == len(read_recorded(answer))
            std = await v2.runmethod.run_get_method_std(**body, seqno=238)
            entries = [entry.model_dump(by_alias=True) for entry in std.stack]
            assert [read_typed(entry) for entry in entries] == read_recorded(answer)


@pytest.mark.usefixtures("tvm")
async def test_tonutils_get_methods(server: str, facts: Facts) -> None:
    async with open_tonutils(server) as client:
        for _what, (body, answer) in list_calls(facts.summary):
            if body["stack"]:
                continue
            found = await client.run_get_method(body["address"], body["method"])
            recorded = read_recorded(answer)
            assert len(found) == len(recorded)
            for value, expected in zip(found, recorded, strict=True):
                if isinstance(expected, int):
                    assert value == expected


async def test_toncenter_errors(server: str) -> None:
    async with open_toncenter(server) as v2:
        with pytest.raises(ToncenterError, match="Failed to parse ton_addr"):
            await v2.accounts.get_address_balance("nothing")


async def test_tonutils_accounts(server: str, facts: Facts) -> None:
    words = {"active": "active", "uninit": "uninit", "nonexist": "nonexist"}

    async with open_tonutils(server) as client:
        for account in facts.accounts:
            info = await client.get_info(account["address"])
            assert info.balance == int(account.get("balance", 0))
            assert info.state.value == words[account["status"]]
            if account["status"] == "active":
                assert info.last_transaction_lt == account["last_trans_lt"]
                assert info.last_transaction_hash == account["last_trans_hash"]
                assert info.code is not None
                assert info.code.hash.hex() == account["code_hash"]


async def test_tonutils_history(server: str, facts: Facts) -> None:
    history = facts.history(0, SHOP[2:])
    collector = facts.history(-1, "33" * 32)

    async with open_tonutils(server) as client:
        found = await client.get_transactions(SHOP, limit=1000)
        assert [(tx.lt, tx.cell.hash.hex()) for tx in found] == [
            (row["lt"], row["hash"]) for row in history
        ]
        found = await client.get_transactions("-1:" + "33" * 32, limit=1000)
        assert len(collector) > 200, "the client needs several pages"
        assert [tx.lt for tx in found] == [row["lt"] for row in collector]
        middle = history[20]["lt"]
        found = await client.get_transactions(SHOP, limit=1000, to_lt=middle)
        assert [tx.lt for tx in found] == [row["lt"] for row in history[:20]]


async def test_tonutils_configuration(server: str) -> None:
    async with open_tonutils(server) as client:
        assert {0, 1, 15, 34} <= (await client.get_config()).keys()
