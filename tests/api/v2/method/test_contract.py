"""Contracts and wallets recognised by code hash, on data cells made here."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Builder

from tonlake.api.chain.account import WALLETS, read_wallet_data
from tonlake.api.v2.method.contract import CONTRACTS, describe_contract

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
    kind = WALLETS[code_hash]
    builder = Builder()
    is_signed, is_plain = "v5" in kind.name, kind.name[:9] in {"wallet v1", "wallet v2"}
    if is_signed:
        builder.store_bit(int(allowed))
    builder.store_uint(seqno, 32).store_int(wallet_id, 32).store_bytes(bytes(40))
    found = read_wallet_data(kind, builder.end_cell().to_boc())
    assert found is not None
    assert found.seqno == seqno
    assert found.wallet_id == (None if is_plain else wallet_id)
    assert found.is_signature_allowed == (allowed if is_signed else None)


def test_the_names_of_wallets_are_those_of_the_public_service() -> None:
    revisions = {"v1": 3, "v2": 2, "v3": 2, "v4": 2}
    names = {
        f"wallet {version} r{revision}"
        for version, count in revisions.items()
        for revision in range(1, count + 1)
    }
    assert {kind.name for kind in WALLETS.values()} == names | {"wallet v5 beta", "wallet v5 r1"}
    assert all(len(code_hash) == 32 for code_hash in (*WALLETS, *CONTRACTS))


@pytest.mark.parametrize("kind", WALLETS.values(), ids=lambda kind: kind.name)
def test_data_that_is_too_short_is_no_wallet_data(kind: object) -> None:
    assert read_wallet_data(kind, EMPTY) is None  # type: ignore[arg-type]


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
