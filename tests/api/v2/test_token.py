"""getTokenData and dnsResolve, compared with the deployed data of the demo node's contracts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.v2.conftest import Asker
from tests.conftest import Facts
from tonlake.api.errors import RequestInvalid
from tonlake.api.v2.token import decode_name, encode_name

TAGS = {
    "jetton_master": "ext.tokens.jettonMasterData",
    "jetton_wallet": "ext.tokens.jettonWalletData",
    "nft_collection": "ext.tokens.nftCollectionData",
    "dns_collection": "ext.tokens.nftCollectionData",
    "nft_item": "ext.tokens.nftItemData",
    "dns_item": "ext.tokens.nftItemData",
}
UNUSED = "0:" + "5" * 64

pytestmark = pytest.mark.usefixtures("tvm")


def pick(facts: Facts, kind: str) -> list[dict[str, Any]]:
    return [contract for contract in facts.summary["contracts"] if contract["kind"] == kind]


def raw(ask: Asker, address: str) -> str:
    found: str = ask("unpackAddress", address=address)
    return found.lower()


@pytest.mark.parametrize("kind", TAGS)
def test_tokens(ask: Asker, facts: Facts, kind: str) -> None:
    contracts = pick(facts, kind)
    assert contracts
    for contract in contracts[:4]:
        found = ask("getTokenData", address=contract["address"])
        assert found["@type"] == TAGS[kind]
        assert found["address"].lower() == contract["address"]
        answers = contract["get_methods"]
        check = globals()[f"check_{found['contract_type']}"]
        check(ask, found, {name.split("(")[0]: answers[name]["stack"] for name in answers})


def check_jetton_master(ask: Asker, found: dict[str, Any], answers: dict[str, Any]) -> None:
    stack = answers["get_jetton_data"]
    assert found["total_supply"] == stack[0]["int"]
    assert found["mintable"] is bool(int(stack[1]["int"]))
    assert raw(ask, found["admin_address"]).startswith("0:")
    assert found["jetton_content"]["type"] == "onchain"
    assert {"name", "symbol", "decimals"} <= found["jetton_content"]["data"].keys()


def check_jetton_wallet(ask: Asker, found: dict[str, Any], answers: dict[str, Any]) -> None:
    assert found["balance"] == answers["get_wallet_data"][0]["int"]
    master = ask("getTokenData", address=found["jetton"])
    assert master["contract_type"] == "jetton_master"
    assert master["jetton_wallet_code"] == found["jetton_wallet_code"]
    assert "mintless_is_claimed" not in found


def check_nft_collection(ask: Asker, found: dict[str, Any], answers: dict[str, Any]) -> None:
    assert found["next_item_index"] == answers["get_collection_data"][0]["int"]
    assert found["collection_content"]["data"]["name"]
    assert ask.refused("getTokenData", address=UNUSED)[0] == 409


def check_nft_item(ask: Asker, found: dict[str, Any], answers: dict[str, Any]) -> None:
    assert found["init"] is True
    assert found["index"] == answers["get_nft_data"][1]["int"]
    collection = ask("getTokenData", address=found["collection_address"])
    assert collection["contract_type"] == "nft_collection"
    content = found["content"]
    assert content.keys() in ({"type", "data"}, {"domain", "data"})


def test_an_account_that_is_no_token(ask: Asker, facts: Facts) -> None:
    wallet = pick(facts, "wallet_v4r2")[0]["address"]
    text = f"Smart contract {wallet.upper()} is not Jetton or NFT"
    assert ask.refused("getTokenData", address=wallet) == (409, text)
    friendly = ask("packAddress", address=wallet)
    text = f"Smart contract {friendly} is not Jetton or NFT"
    assert ask.refused("getTokenData", address=friendly) == (409, text)


def test_a_token_before_it_was_there(ask: Asker, facts: Facts) -> None:
    address = pick(facts, "nft_item")[0]["address"]
    assert ask.refused("getTokenData", address=address, seqno=1)[0] == 409


def test_names(ask: Asker, facts: Facts) -> None:
    kinds = set()
    for item in pick(facts, "dns_item"):
        name = item["domain"].removesuffix(".ton")
        asked = {"address": item["collection"], "name": name}
        (entry,) = ask("dnsResolve", **asked)["entries"]
        assert (entry["@type"], entry["name"]) == ("dns.entry", name)
        resolver = entry["entry"]["resolver"]["account_address"]
        assert raw(ask, resolver) == item["address"]
        found = ask("dnsResolve", **asked, ttl=1)
        assert found == ask("dnsResolve", address=item["address"], name=".")
        assert {entry["name"] for entry in found["entries"]} <= {"."}
        kinds |= {entry["entry"]["@type"] for entry in found["entries"]}
        data = ask("getTokenData", address=item["address"])["content"]
        assert data["domain"] == item["domain"]
        assert ("wallet" in data["data"]) == any(
            entry["entry"]["@type"] == "dns.entryDataSmcAddress" for entry in found["entries"]
        )
    assert {"dns.entryDataSmcAddress", "dns.entryDataStorageAddress", "dns.entryDataText"} <= kinds


def test_what_does_not_resolve(ask: Asker, facts: Facts) -> None:
    wallet = pick(facts, "wallet_v4r2")[0]["address"]
    status, text = ask.refused("dnsResolve", address=wallet, name="x")
    assert status == 500
    assert "does not resolve: exit code 11" in text
    elector = f"-1:{'3' * 64}"
    status, text = ask.refused("dnsResolve", address=elector, name="x")
    assert (status, text) == (500, f"{elector} does not resolve: it is not a DNS contract")
    status, text = ask.refused("dnsResolve", address=wallet, name="a..b")
    assert (status, text) == (422, "name 'a..b' is not a domain")
    status, text = ask.refused("dnsResolve", address=wallet, ttl=-1)
    assert (status, text) == (422, "failed to validate request: ttl should be non-negative")


LABELS = st.text(st.characters(codec="utf-8", exclude_characters=".\0"), min_size=1, max_size=6)


@given(st.lists(LABELS, min_size=1, max_size=4))
def test_inner_names(labels: list[str]) -> None:
    inner = encode_name(".".join(labels))
    assert inner.count(b"\0") == len(labels)
    assert decode_name(inner) == ".".join(labels)


def test_names_without_labels() -> None:
    assert (encode_name(""), encode_name(".")) == (b"", b"\0")
    assert decode_name(b"\0") == "."
    with pytest.raises(RequestInvalid, match="name"):
        encode_name("x" * 127)
