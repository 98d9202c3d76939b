"""Operations about accounts and wallets, compared with the demo node's lite server."""

import base64
from contextlib import closing
from pathlib import Path

from litestar.testing import TestClient
from pytoniq_core.boc import Cell

from tests.api.v3.conftest import Asker, Facts, to_base64
from tests.api.v3.scene import make_raw
from tests.patience import PATIENT, patient
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.span import Span

UNKNOWN = "0:" + "1" * 64
WALLETS = {
    "wallet_v3r2": "wallet v3 r2",
    "wallet_v4r2": "wallet v4 r2",
    "wallet_v5r1": "wallet v5 r1",
}
INTERFACES = {
    "wallet_hv3": ["wallet_highload_v3r1"],
    "jetton_master": ["jetton_master"],
    "jetton_wallet": ["jetton_wallet_v1"],
    "nft_collection": ["nft_collection"],
    "nft_item": ["nft_item_simple"],
    "dns_collection": ["dns", "nft_collection"],
    "dns_item": ["dns", "editable", "nft_item"],
    "config": None,
    "elector": None,
}


def _hash_of(boc: str) -> str:
    cell = Cell.one_from_boc(base64.b64decode(boc))
    return base64.b64encode(cell.hash).decode()


def test_every_account_equals_the_lite_server_s(ask: Asker, facts: Facts) -> None:
    wanted = [fact["address"] for fact in facts.accounts]
    answer = ask("accountStates", address=wanted)
    states = {state["address"]: state for state in answer["accounts"]}
    assert len(states) == len(answer["accounts"])
    for fact in facts.accounts:
        state = states[fact["address"].upper()]
        assert state["balance"] == fact["balance"]
        assert state["status"] == fact["status"]
        assert state["extra_currencies"] == {}
        assert state["last_transaction_lt"] == str(fact["last_trans_lt"])
        for name in ("code", "data"):
            if fact.get(f"{name}_hash"):
                assert state[f"{name}_hash"] == to_base64(fact[f"{name}_hash"])
                assert _hash_of(state[f"{name}_boc"]) == state[f"{name}_hash"]
            else:
                assert {f"{name}_hash", f"{name}_boc"}.isdisjoint(state)
    assert set(answer["address_book"]) == set(states)
    kinds = {
        *("jetton_master", "jetton_wallet", "nft_collection", "nft_item"),
        *("dns_item", "dns_collection"),
    }
    tokens = {c["address"].upper() for c in facts.contracts if c["kind"] in kinds}
    assert set(answer["metadata"]) == tokens


def _write_depth_first(boc: str) -> str:
    """Return a bag as another library writes it: depth first, without CRC."""
    cell = Cell.one_from_boc(base64.b64decode(boc))
    return base64.b64encode(cell.to_boc(hash_crc32=False)).decode()


def test_code_and_data_are_bags_depth_first_without_crc(ask: Asker, facts: Facts) -> None:
    for contract in facts.contracts:
        (state,) = ask("accountStates", address=contract["address"])["accounts"]
        information = ask("addressInformation", address=contract["address"])
        for name in ("code", "data"):
            assert state[f"{name}_boc"] == _write_depth_first(state[f"{name}_boc"])
            assert information[name] == state[f"{name}_boc"]


def test_accounts_without_code_have_no_interfaces(ask: Asker, facts: Facts) -> None:
    bare = [fact["address"] for fact in facts.accounts if not fact.get("code_hash")]
    assert bare
    states = ask("accountStates", address=bare)["accounts"]
    assert [state["interfaces"] for state in states] == [[] for _ in bare]


def test_code_without_methods_has_no_interfaces_in_the_address_book(market: Asker) -> None:
    hermit, shop = make_raw("hermit"), make_raw("shop")
    book = market("addressBook", address=[hermit, shop])
    assert [book[hermit]["interfaces"], book[shop]["interfaces"]] == [[], None]


def test_wallets_without_extra_currencies_leave_them_out(ask: Asker, facts: Facts) -> None:
    wanted = [contract["address"] for contract in facts.contracts]
    wallets = ask("walletStates", address=wanted)["wallets"]
    assert len(wallets) == len(set(wanted))
    assert not any("extra_currencies" in wallet for wallet in wallets)


def test_bodies_only_when_wanted(ask: Asker, facts: Facts) -> None:
    address = facts.contract("wallet_v4r2")["address"]
    (full,) = ask("accountStates", address=address)["accounts"]
    (bare,) = ask("accountStates", address=address, include_boc="false")["accounts"]
    assert bare == {k: v for k, v in full.items() if not k.endswith("_boc")}
    assert {"code_boc", "data_boc"} <= set(full)


def test_accounts_by_code(ask: Asker, facts: Facts) -> None:
    wanted = [fact["address"] for fact in facts.accounts]
    code = facts.contract("jetton_wallet")["state"]["code_hash"]
    found = ask("accountStates", address=",".join(wanted), code_hash=code)["accounts"]
    assert len(found) == 17
    assert {state["code_hash"] for state in found} == {to_base64(code)}


def test_unknown_accounts_are_absent(ask: Asker) -> None:
    assert ask("accountStates", address=UNKNOWN)["accounts"] == []
    assert ask("walletStates", address=UNKNOWN)["wallets"] == []


def test_wallets_are_read_from_their_data(ask: Asker, facts: Facts) -> None:
    for contract in facts.contracts:
        (wallet,) = ask("walletStates", address=contract["address"])["wallets"]
        kind = WALLETS.get(contract["kind"])
        assert wallet["is_wallet"] == (kind is not None)
        assert wallet["balance"] == contract["state"]["balance"]
        if kind is None:
            assert {"wallet_type", "seqno", "wallet_id"}.isdisjoint(wallet)
            continue
        assert wallet["wallet_type"] == kind
        assert wallet["seqno"] == int(contract["get_methods"]["seqno"]["stack"][0]["int"])
        assert isinstance(wallet["wallet_id"], int)
        assert ("is_signature_allowed" in wallet) == (kind == "wallet v5 r1")


def test_the_address_book_writes_wallets_not_bounceable(ask: Asker, facts: Facts) -> None:
    for contract in facts.contracts:
        (row,) = ask("addressBook", address=contract["address"]).values()
        is_wallet = contract["kind"] in WALLETS
        assert row["user_friendly"][:2] in (("UQ", "Uf") if is_wallet else ("EQ", "Ef"))
        (state,) = ask("accountStates", address=contract["address"])["accounts"]
        expected = [contract["kind"]] if is_wallet else INTERFACES[contract["kind"]]
        assert state["interfaces"] == expected
        has_methods = state["contract_methods"] is not None
        assert row["interfaces"] == (expected if has_methods else expected or [])


def test_the_address_book_keeps_what_was_sent(ask: Asker, facts: Facts) -> None:
    uninit = next(fact for fact in facts.accounts if fact["status"] == "uninit")["address"]
    book = ask("addressBook", address=[UNKNOWN, "nonsense", uninit])
    assert list(book) == [UNKNOWN, "nonsense", uninit]
    assert book["nonsense"] == {"user_friendly": None, "domain": None, "interfaces": []}
    assert book[UNKNOWN]["user_friendly"].startswith("UQ")
    assert book[UNKNOWN]["interfaces"] == []
    assert book[uninit]["user_friendly"].startswith("UQ")
    assert book[uninit]["interfaces"] is None
    friendly = book[uninit]["user_friendly"]
    assert ask("addressBook", address=friendly) == {friendly: book[uninit]}


def test_a_workchain_without_friendly_form(ask: Asker) -> None:
    wide = "1000:" + "1" * 64
    assert ask("addressBook", address=wide)[wide]["user_friendly"] is None


def test_friendly_addresses_of_the_test_network(demo_lake: Path) -> None:
    with TestClient(create_app(demo_lake, patient(http={"testnet": True}))) as client:
        (row,) = client.get("/api/v3/addressBook", params={"address": UNKNOWN}).json().values()
    assert row["user_friendly"].startswith("0Q")


def test_the_richest_come_first(ask: Asker, facts: Facts) -> None:
    found = ask("topAccountsByBalance", limit=1000)
    wanted = sorted((int(fact["balance"]) for fact in facts.accounts), reverse=True)
    assert [int(row["balance"]) for row in found] == wanted
    assert len(ask("topAccountsByBalance")) == 10
    assert ask.refused("topAccountsByBalance", limit=1001)[0] == 422


def test_address_information(ask: Asker, facts: Facts) -> None:
    for fact in facts.accounts:
        for operation in ("addressInformation", "account"):
            answer = ask(operation, address=fact["address"], use_v2=False)
            assert (answer["balance"], answer["status"]) == (fact["balance"], fact["status"])
            assert answer["last_transaction_lt"] == str(fact["last_trans_lt"])
            assert answer["frozen_hash"] is None
            for name in ("code", "data"):
                boc = answer[name]
                wanted = fact.get(f"{name}_hash")
                assert (boc and _hash_of(boc)) == (wanted and to_base64(wanted))


def test_information_of_an_unknown_account(ask: Asker) -> None:
    known = {
        "balance": "0",
        "last_transaction_lt": "0",
        "last_transaction_hash": "A" * 43 + "=",
        "status": "uninit",
    }
    nothing = {"code": None, "data": None, "frozen_hash": None}
    assert ask("addressInformation", address=UNKNOWN) == {**known, **nothing}
    assert ask("walletInformation", address=UNKNOWN) == known


def test_wallet_information(ask: Asker, facts: Facts) -> None:
    for contract in facts.contracts:
        for operation in ("walletInformation", "wallet"):
            kind = WALLETS.get(contract["kind"])
            if kind is None:
                assert ask.refused(operation, address=contract["address"]) == (409, "not a wallet")
                continue
            answer = ask(operation, address=contract["address"])
            assert answer["wallet_type"] == kind
            assert answer["seqno"] == int(contract["get_methods"]["seqno"]["stack"][0]["int"])
            assert answer["balance"] == contract["state"]["balance"]


def test_a_state_that_is_not_whole_is_never_guessed(demo_node: Path, tmp_path: Path) -> None:
    """A lake of packages that begin in the middle does not know the code of older contracts."""
    with closing(PackSource(demo_node / "archive" / "packages" / "arch0000")) as source:
        ingest(source, tmp_path, Span(200, 238), Settings())
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        rich = client.get("/api/v3/topAccountsByBalance?limit=100").json()
        answer = client.get(
            "/api/v3/accountStates", params={"address": [row["account"] for row in rich]}
        )
        partial = [
            state
            for state in answer.json()["accounts"]
            if "code_hash" in state and "code_boc" not in state
        ]
        assert partial
        assert "incomplete in the lake" in answer.headers["x-tonlake-warning"]
        unknown = client.get("/api/v3/account", params={"address": UNKNOWN})
        assert unknown.status_code == 404
        assert "no block of masterchain 200..238 touched it" in unknown.json()["error"]
        absent = client.get("/api/v3/walletStates", params={"address": [UNKNOWN, "0:" + "2" * 64]})
        assert absent.json()["wallets"] == []
        assert "(and 1 more) is not known" in absent.headers["x-tonlake-warning"]
        single = client.get("/api/v3/account", params={"address": partial[0]["address"]})
        assert single.json()["code"] is None
        assert "incomplete in the lake" in single.headers["x-tonlake-warning"]


def test_states_and_wallets_of_the_past(ask: Asker, facts: Facts) -> None:
    wallet = facts.contract("wallet_v4r2")["address"].upper()
    history = [row for row in facts.transactions if row["address"] == wallet]
    before = history[-1]["mc_seqno"] - 1
    (now,) = ask("accountStates", address=wallet)["accounts"]
    (then,) = ask("accountStates", address=wallet, mc_seqno=before)["accounts"]
    lts = [row["lt"] for row in history if row["mc_seqno"] <= before]
    assert then["last_transaction_lt"] == str(max(lts))
    assert then["account_state_hash"] != now["account_state_hash"]
    (state,) = ask("walletStates", address=wallet, mc_seqno=before)["wallets"]
    information = ask("walletInformation", address=wallet, mc_seqno=before)
    assert state["last_transaction_lt"] == information["last_transaction_lt"] == str(max(lts))
    assert state["seqno"] == information["seqno"]
    assert state["seqno"] <= ask("walletInformation", address=wallet)["seqno"]
    assert ask.refused("accountStates", address=wallet, mc_seqno=10**6)[0] == 404
    assert ask.refused("walletInformation", address=wallet, mc_seqno=10**6)[0] == 404
