"""Addresses and hashes in other forms, against an independent implementation."""

import base64

from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq_core import Address

from tests.api.v2.conftest import Asker

HASHES = st.binary(min_size=32, max_size=32)
few = settings(max_examples=40, deadline=None)


@few
@given(
    workchain=st.integers(-128, 127),
    account=HASHES,
    bounceable=st.booleans(),
    test_only=st.booleans(),
    safe=st.booleans(),
)
def test_every_written_form_is_detected(
    ask: Asker, workchain: int, account: bytes, *, bounceable: bool, test_only: bool, safe: bool
) -> None:
    oracle = Address((workchain, account))

    def write(*flags: str) -> str:
        text: str = oracle.to_str(
            is_bounceable="bounceable" in flags,
            is_test_only=test_only,
            is_url_safe="safe" in flags,
        )
        return text

    raw = f"{workchain}:{account.hex()}"
    kind = ["bounceable"] * bounceable
    written = write(*kind, *["safe"] * safe)
    found = ask("detectAddress", address=written)
    tag = "ext.utils.detectedAddressVariant"
    assert found == {
        "@type": "ext.utils.detectedAddress",
        "raw_form": raw,
        "bounceable": {
            "@type": tag,
            "b64": write("bounceable"),
            "b64url": write("bounceable", "safe"),
        },
        "non_bounceable": {"@type": tag, "b64": write(), "b64url": write("safe")},
        "given_type": "friendly_bounceable" if bounceable else "friendly_non_bounceable",
        "test_only": test_only,
    }
    assert ask("unpackAddress", address=written) == f"{workchain}:{account.hex().upper()}"
    assert ask("packAddress", address=written) == write(*kind, "safe")


@few
@given(workchain=st.integers(-128, 127), account=HASHES, upper=st.booleans())
def test_a_raw_address_is_bounceable_and_of_the_main_network(
    ask: Asker, workchain: int, account: bytes, *, upper: bool
) -> None:
    digits = account.hex().upper() if upper else account.hex()
    found = ask("detectAddress", address=f"{workchain}:{digits}")
    assert found["given_type"] == "raw_form"
    assert found["test_only"] is False
    packed = ask("packAddress", address=f"{workchain}:{digits}")
    assert packed == Address((workchain, account)).to_str()
    assert found["bounceable"]["b64url"] == packed


@few
@given(HASHES, st.sampled_from(["hex", "HEX", "b64", "b64url", "unpadded"]))
def test_every_form_of_a_hash_is_detected(ask: Asker, value: bytes, form: str) -> None:
    forms = {
        "hex": value.hex(),
        "HEX": value.hex().upper(),
        "b64": base64.b64encode(value).decode(),
        "b64url": base64.urlsafe_b64encode(value).decode(),
        "unpadded": base64.urlsafe_b64encode(value).decode().rstrip("="),
    }
    assert ask("detectHash", hash=forms[form]) == {
        "@type": "ext.utils.detectedHash",
        "b64": forms["b64"],
        "b64url": forms["unpadded"],
        "hex": forms["hex"],
    }


def test_a_broken_address_is_refused(ask: Asker) -> None:
    good = Address((0, bytes(32))).to_str()
    for text in ("", "0:12", good[:-1] + "B", "9" * 64, "x" * 48, "99999999999:" + "0" * 64):
        assert ask.refused("detectAddress", address=text) == (
            422,
            f"failed to parse get request: Failed to parse ton_addr: '{text}'",
        )
    assert ask.refused("packAddress")[1].endswith("Failed to parse ton_addr: ''")


def test_a_workchain_without_friendly_form_is_refused(ask: Asker) -> None:
    assert ask.refused("packAddress", address="1000:" + "0" * 64)[0] == 422
    assert ask("unpackAddress", address="1000:" + "ab" * 32) == "1000:" + "AB" * 32


def test_a_broken_hash_is_refused(ask: Asker) -> None:
    for text in ("", "00", "0" * 63, "!" * 44):
        assert ask.refused("detectHash", hash=text) == (
            422,
            f"failed to parse get request: invalid hash: '{text}'",
        )


def test_an_unescaped_plus_of_a_query_is_read(ask: Asker) -> None:
    value = b"\xfb" * 32
    text = base64.b64encode(value).decode()
    assert "+" in text
    answer = ask.client.get(f"/api/v2/detectHash?hash={text}")
    assert answer.json()["result"]["hex"] == value.hex()
