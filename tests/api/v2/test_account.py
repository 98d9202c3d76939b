"""Accounts compared with the node's own answers, at the last block and at past ones."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Builder, Cell, HashMap

from tests.api.v2.conftest import Asker
from tests.api.v3.conftest import to_base64
from tests.conftest import Facts
from tonlake.api.chain.account import WALLETS, read_wallet_data
from tonlake.api.text.encoding import Address
from tonlake.api.v2.account import CONTRACTS, describe_contract, is_suspended

ZERO_ID = {
    "@type": "internal.transactionId",
    "lt": "0",
    "hash": base64.b64encode(bytes(32)).decode(),
}
NEVER_SEEN = "0:" + "ab" * 32
WORDS = {"active": "active", "frozen": "frozen", "uninit": "uninitialized"}
WALLET_NAMES = {
    "wallet_v3r2": "wallet v3 r2",
    "wallet_v4r2": "wallet v4 r2",
    "wallet_v5r1": "wallet v5 r1",
}


def _cell_hash(boc: str) -> str:
    return Cell.one_from_boc(base64.b64decode(boc)).hash.hex()


def test_every_account_at_the_last_block(ask: Asker, facts: Facts) -> None:
    assert facts.accounts
    for expected in facts.accounts:
        found = ask("getAddressInformation", address=expected["address"])
        word = WORDS.get(expected["status"], "uninitialized")
        assert found["@type"] == "raw.fullAccountState"
        assert found["state"] == word
        assert found["balance"] == str(expected.get("balance", 0))
        assert found["extra_currencies"] == []
        assert found["suspended"] is False
        assert found["frozen_hash"] == ""
        if expected["status"] == "nonexist":
            assert found["last_transaction_id"] == ZERO_ID
        else:
            assert found["last_transaction_id"]["lt"] == str(expected["last_trans_lt"])
            assert found["last_transaction_id"]["hash"] == to_base64(expected["last_trans_hash"])
        if word == "active":
            assert _cell_hash(found["code"]) == expected["code_hash"]
            assert _cell_hash(found["data"]) == expected["data_hash"]
        else:
            assert (found["code"], found["data"]) == ("", "")
        assert ask("getAddressBalance", address=expected["address"]) == found["balance"]
        assert ask("getAddressState", address=expected["address"]) == word


def test_block_and_time_of_a_state(ask: Asker, facts: Facts) -> None:
    by_key = {(row["workchain"], row["shard"], row["seqno"]): row for row in facts.blocks}
    last = facts.summary["last_mc_block"]
    tops = facts.summary["shards_at_last_mc_block"]
    found = ask("getAddressInformation", address="0:" + "ff" * 32)
    assert found["block_id"] == {
        "@type": "ton.blockIdExt",
        "workchain": -1,
        "shard": str(last["shard"]),
        "seqno": last["seqno"],
        "root_hash": to_base64(last["root_hash"]),
        "file_hash": to_base64(last["file_hash"]),
    }
    right = next(top for top in tops if top["shard"] == -(1 << 62))
    expected = by_key[0, right["shard"], right["seqno"]]["gen_utime"]
    assert found["sync_utime"] == expected
    master = ask("getAddressInformation", address="-1:" + "55" * 32, seqno=7)
    assert master["sync_utime"] == by_key[-1, -(1 << 63), 7]["gen_utime"]
    assert master["block_id"]["seqno"] == 7


def test_past_states_follow_the_history(ask: Asker, facts: Facts) -> None:
    """At any block the last transaction is the newest one committed up to there."""
    words = {0: "uninitialized", 1: "frozen", 2: "active", 3: "uninitialized"}
    for expected in facts.accounts[::9]:
        workchain, account = expected["address"].split(":")
        history = facts.history(int(workchain), account)
        for seqno in range(1, 239, 23):
            rows = [row for row in history if row["mc_seqno"] <= seqno]
            found = ask("getAddressInformation", address=expected["address"], seqno=seqno)
            if not rows:
                assert found["last_transaction_id"] == ZERO_ID
                continue
            assert found["state"] == words[rows[0]["end_status"]]
            if rows[0]["end_status"] == 3:
                assert found["last_transaction_id"] == ZERO_ID
            else:
                assert found["last_transaction_id"]["hash"] == to_base64(rows[0]["hash"])


def test_code_and_data_of_past_states_are_complete(ask: Asker, facts: Facts) -> None:
    """A wallet's seqno in its data grows by one with each message it accepted."""
    shop = next(row for row in facts.summary["contracts"] if row.get("name") == "Lighthouse Coffee")
    seqnos = [
        ask("getWalletInformation", address=shop["address"], seqno=seqno).get("seqno", 0)
        for seqno in range(1, 239, 9)
    ]
    assert seqnos == sorted(seqnos)
    assert len(set(seqnos)) > 5
    assert seqnos[-1] <= int(shop["get_methods"]["seqno"]["stack"][0]["int"])


def test_wallets_are_recognised(ask: Asker, facts: Facts) -> None:
    kinds = {row["address"]: row for row in facts.summary["contracts"]}
    wallets = 0
    for address, contract in kinds.items():
        found = ask("getWalletInformation", address=address)
        assert found["@type"] == "ext.accounts.walletInformation"
        name = WALLET_NAMES.get(contract["kind"])
        assert found["wallet"] is (name is not None)
        assert found.get("wallet_type") == name
        if name is None:
            assert not {"seqno", "wallet_id", "is_signature_allowed"} & found.keys()
            continue
        wallets += 1
        methods = contract["get_methods"]
        assert found["seqno"] == int(methods["seqno"]["stack"][0]["int"])
        if "get_subwallet_id" in methods:
            wallet_id = int(methods["get_subwallet_id"]["stack"][0]["int"])
            assert found["wallet_id"] & 0xFFFFFFFF == wallet_id & 0xFFFFFFFF
        assert found.get("is_signature_allowed") is (True if name == "wallet v5 r1" else None)
    assert wallets == 13


def test_extended_information_reads_the_known_contracts(ask: Asker, facts: Facts) -> None:
    tags = {
        "wallet_v3r2": ("wallet.v3.accountState", 2),
        "wallet_v4r2": ("wallet.v4.accountState", 2),
    }
    for contract in facts.summary["contracts"]:
        found = ask("getExtendedAddressInformation", address=contract["address"])
        plain = ask("getAddressInformation", address=contract["address"])
        tag, revision = tags.get(contract["kind"], ("raw.accountState", 0))
        assert found["@type"] == "fullAccountState"
        assert (found["account_state"]["@type"], found["revision"]) == (tag, revision)
        for name in ("balance", "last_transaction_id", "block_id", "sync_utime"):
            assert found[name] == plain[name]
        assert found["address"]["@type"] == "accountAddress"
        if tag == "raw.accountState":
            for name in ("code", "data", "frozen_hash"):
                assert found["account_state"][name] == plain[name]
        else:
            seqno = int(contract["get_methods"]["seqno"]["stack"][0]["int"])
            assert found["account_state"]["seqno"] == seqno


def test_an_account_never_seen_is_uninitialized_in_a_complete_lake(ask: Asker) -> None:
    assert ask("getAddressState", address=NEVER_SEEN) == "uninitialized"
    assert ask("getAddressBalance", address=NEVER_SEEN, seqno=3) == "0"
    found = ask("getAddressInformation", address=NEVER_SEEN)
    assert found["last_transaction_id"] == ZERO_ID
    extended = ask("getExtendedAddressInformation", address=NEVER_SEEN)
    assert extended["account_state"] == {"@type": "uninited.accountState", "frozen_hash": ""}
    assert ask("getWalletInformation", address=NEVER_SEEN)["wallet"] is False
    assert ask("getTransactions", address=NEVER_SEEN) == []


@pytest.mark.parametrize(
    "method", ["getAddressInformation", "getAddressBalance", "getAddressState"]
)
def test_seqno_must_be_positive_and_known(ask: Asker, method: str) -> None:
    address = NEVER_SEEN
    assert ask.refused(method, address=address, seqno=239) == (
        500,
        "LITE_SERVER_NOTREADY: seqno not in db",
    )
    for seqno in (0, -1):
        assert ask.refused(method, address=address, seqno=seqno) == (
            422,
            "failed to validate request: seqno should be positive",
        )
    for text in ("x", "", "1.5", str(1 << 31)):
        assert ask.refused(method, address=address, seqno=text) == (
            422,
            "failed to parse get request: failed to parse seqno",
        )


def test_every_way_to_write_an_address_names_the_same_account(ask: Asker, facts: Facts) -> None:
    expected: dict[str, Any] = facts.accounts[0]
    forms = ask("detectAddress", address=expected["friendly"])
    texts = [
        forms["raw_form"],
        forms["raw_form"].upper(),
        *(
            forms[kind][form]
            for kind in ("bounceable", "non_bounceable")
            for form in ("b64", "b64url")
        ),
    ]
    assert {ask("getAddressBalance", address=text) for text in texts} == {expected["balance"]}


WORD = st.integers(0, (1 << 32) - 1)
SIGNED = st.integers(-(1 << 31), (1 << 31) - 1)
HIGHLOAD_V2 = "jOtFs81LXMYOquHBO5wJI5Jnf+U2sumy2AG2Lv+TH+E="
HIGHLOAD_V1 = "NowDly5fTCRBK4GGUt4d4qJjDRwBFgmZnf90X7NoSa0="
EMPTY = Builder().end_cell().to_boc()


@given(WORD, SIGNED, st.booleans(), st.sampled_from(sorted(WALLETS)))
def test_every_kind_of_wallet_is_read(
    seqno: int,
    wallet_id: int,
    allowed: bool,  # noqa: FBT001 - drawn by Hypothesis
    code_hash: bytes,
) -> None:
    name = WALLETS[code_hash]
    builder = Builder()
    is_signed, is_plain = "v5" in name, name[:9] in {"wallet v1", "wallet v2"}
    if is_signed:
        builder.store_bit(int(allowed))
    builder.store_uint(seqno, 32).store_int(wallet_id, 32).store_bytes(bytes(40))
    found = read_wallet_data(code_hash, builder.end_cell().to_boc())
    assert found["seqno"] == seqno
    assert found.get("wallet_id") == (None if is_plain else wallet_id)
    assert found.get("is_signature_allowed") == (allowed if is_signed else None)


def test_the_names_of_wallets_are_those_of_the_public_service() -> None:
    revisions = {"v1": 3, "v2": 2, "v3": 2, "v4": 2}
    names = {
        f"wallet {version} r{revision}"
        for version, count in revisions.items()
        for revision in range(1, count + 1)
    }
    assert {*WALLETS.values()} == names | {"wallet v5 beta", "wallet v5 r1"}
    assert all(len(code_hash) == 32 for code_hash in (*WALLETS, *CONTRACTS))


@pytest.mark.parametrize("code_hash", WALLETS, ids=WALLETS.values())
def test_data_that_is_too_short_is_no_wallet_data(code_hash: bytes) -> None:
    assert read_wallet_data(code_hash, EMPTY) == {}


@given(WORD, SIGNED)
def test_highload_wallets(seqno: int, wallet_id: int) -> None:
    data = Builder().store_int(wallet_id, 32).store_uint(0, 64).end_cell().to_boc()
    code_hash = base64.b64decode(HIGHLOAD_V2)
    assert describe_contract(code_hash, code=EMPTY, data=data, frozen_hash=None) == (
        {"@type": "wallet.highload.v2.accountState", "wallet_id": wallet_id},
        1,
    )
    data = Builder().store_uint(seqno, 32).store_int(wallet_id, 32).end_cell().to_boc()
    code_hash = base64.b64decode(HIGHLOAD_V1)
    tag = "wallet.highload.v1.accountState"
    assert describe_contract(code_hash, code=EMPTY, data=data, frozen_hash=None) == (
        {"@type": tag, "seqno": seqno, "wallet_id": wallet_id},
        2,
    )


@pytest.mark.parametrize("code_hash", [*CONTRACTS, bytes(32)])
@pytest.mark.parametrize("data", [EMPTY, None])
def test_a_contract_without_its_data_is_raw(code_hash: bytes, data: bytes | None) -> None:
    found, revision = describe_contract(code_hash, code=EMPTY, data=data, frozen_hash=None)
    assert (found["@type"], revision) == ("raw.accountState", 0)
    assert found["frozen_hash"] == ""
    assert (found["data"] == "") is (data is None)


def test_an_account_without_code_is_uninited() -> None:
    found, revision = describe_contract(None, code=None, data=None, frozen_hash=b"\x01" * 32)
    assert (found["@type"], revision) == ("uninited.accountState", 0)
    assert base64.b64decode(found["frozen_hash"]) == b"\x01" * 32


UNTIL = 1803189600
SUSPENDED = [Address(0, b"\x11" * 32), Address(-1, b"\x22" * 32), Address(0, bytes(32))]
MASTER = {"seqno": 30, "key_block": False, "prev_key_block_seqno": 20}


class Asked:
    """Stands for a call: the one row that is asked for, and what was asked."""

    def __init__(self, boc: bytes | None, last_mc_seqno: int) -> None:
        """Take the cell of parameter 44, or None, and the newest block."""
        self.reader = self.snapshot = self
        self.boc, self.last_mc_seqno = boc, last_mc_seqno
        self.asked: list[dict[str, Any]] = []
        self.kept = 0

    def rows(self, name: str, **params: object) -> list[dict[str, Any]]:
        """Answer the query for a parameter."""
        assert name == "v2/config_params"
        self.asked.append(params)
        return [] if self.boc is None else [{"param": 44, "boc": self.boc}]

    def lasting_rows(self, name: str, **params: object) -> list[dict[str, Any]]:
        """Answer it for all who ask about the newest block."""
        self.kept += 1
        return self.rows(name, **params)


def _param(addresses: list[Address]) -> bytes:
    entries = HashMap(288, value_serializer=lambda _value, into: into)
    for address in addresses:
        key = (address.workchain & 0xFFFFFFFF) << 256 | int.from_bytes(address.account, "big")
        entries.set_int_key(key, 1)
    cell = Builder().store_uint(0, 8)
    root = entries.serialize()
    cell = cell.store_bit(0) if root is None else cell.store_bit(1).store_ref(root)
    data: bytes = cell.store_uint(UNTIL, 32).end_cell().to_boc()
    return data


@pytest.fixture(params=[MASTER["seqno"], 31], ids=["newest", "past"])
def suspended(request: pytest.FixtureRequest) -> Callable[..., bool]:
    """Ask whether an account is suspended; what holds in the newest block may be kept."""

    def ask(address: Address, utime: int, boc: bytes | None) -> bool:
        call = Asked(boc, request.param)
        found = is_suspended(call, MASTER, address, utime)  # type: ignore[arg-type]
        assert call.asked == [{"mc_seqno": 20, "param": 44}]
        assert call.kept == (request.param == MASTER["seqno"])
        return found

    return ask


def test_listed_accounts_are_suspended_until_the_date(suspended: Callable[..., bool]) -> None:
    boc = _param(SUSPENDED)
    for address in SUSPENDED:
        assert suspended(address, UNTIL - 1, boc)
        assert not suspended(address, UNTIL, boc)
        assert not suspended(Address(address.workchain, b"\x33" * 32), 1, boc)
        assert not suspended(Address(5, address.account), 1, boc)


def test_without_a_list_none_is(suspended: Callable[..., bool]) -> None:
    assert not suspended(SUSPENDED[0], 1, None)
    assert not suspended(SUSPENDED[0], 1, _param([]))
