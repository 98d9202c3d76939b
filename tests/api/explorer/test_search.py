"""The search finds every kind of thing in every form."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.conftest import read_lines
from tonlake.api.text.encoding import parse_address, render_friendly


@pytest.fixture(scope="module")
def find(client: TestClient[Any]) -> Callable[[str], str | None]:
    def ask(text: str) -> str | None:
        answer = client.get("/search", params={"q": text}, follow_redirects=False)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 303, answer.text
        assert client.get(answer.headers["location"]).status_code == 200
        return str(answer.headers["location"])

    return ask


def _first(demo_facts: Path, name: str) -> dict[str, Any]:
    lines = read_lines(demo_facts / f"expected-{name}.jsonl")
    return lines[len(lines) // 2]  # type: ignore[no-any-return]


def _forms(digest: str) -> list[str]:
    data = bytes.fromhex(digest)
    plain = base64.b64encode(data).decode()
    return [digest, digest.upper(), f"0x{digest}", plain, plain.translate({43: 45, 47: 95})]


def test_addresses_in_any_form(find: Callable[[str], str | None], demo_facts: Path) -> None:
    row = _first(demo_facts, "transactions")
    raw = f"{row['workchain']}:{row['account']}"
    address = parse_address(raw)
    forms = [
        render_friendly(address, bounceable=bounceable, test_only=test_only).translate(alphabet)
        for bounceable in (True, False)
        for test_only in (True, False)
        for alphabet in ({}, str.maketrans("-_", "+/"))
    ]
    assert {find(form) for form in (raw, raw.upper(), f" {raw} ", *forms)} == {
        f"/account/{str(address).replace(':', '%3A')}"
    }
    assert find(row["account"]) == f"/account/{str(address).replace(':', '%3A')}"


def test_transactions_and_messages(find: Callable[[str], str | None], demo_facts: Path) -> None:
    row = _first(demo_facts, "transactions")
    assert {find(form) for form in _forms(row["hash"])} == {f"/transaction/{row['hash']}"}
    assert find(row["in_msg_hash"]) == f"/trace/{row['in_msg_hash']}"


def test_blocks(find: Callable[[str], str | None], demo_facts: Path) -> None:
    block = _first(demo_facts, "blocks")
    shard = f"{block['shard'] & 0xFFFFFFFFFFFFFFFF:016x}"
    wanted = f"/block/{block['workchain']}:{shard}:{block['seqno']}"
    for form in (
        f"{block['workchain']}:{shard}:{block['seqno']}",
        f"({block['workchain']},{shard},{block['seqno']})",
        f"({block['workchain']},{block['shard']},{block['seqno']})",
        block["root_hash"],
        block["file_hash"],
    ):
        assert find(form) == wanted
    assert find("100") == "/block/-1:8000000000000000:100"


def test_payment_link(find: Callable[[str], str | None], demo_facts: Path) -> None:
    account = _first(demo_facts, "transactions")["account"]
    path = find(account)
    assert path is not None
    assert find(f"ton://transfer/{account}?amount=1000&text=hello") == path


def test_domains(find: Callable[[str], str | None], client: TestClient[Any]) -> None:
    path = find("Harbour-Club.ton")
    assert path is not None
    assert "harbour-club.ton" in client.get(path).text


def test_a_time_leads_to_the_first_block_at_or_after_it(
    find: Callable[[str], str | None], client: TestClient[Any]
) -> None:
    asked = "/api/v3/blocks?workchain=-1&sort=asc&limit=1000"
    blocks = [
        (each["seqno"], int(each["gen_utime"])) for each in client.get(asked).json()["blocks"]
    ]
    newest = blocks[-1][1]
    for utime in range(newest - 40, newest + 1):
        seqno = min(seqno for seqno, at in blocks if at >= utime)
        shown = f"{datetime.fromtimestamp(utime, UTC):%Y-%m-%d %H:%M:%S}"
        for text in (shown, f"{shown} UTC", f"{shown.replace(' ', 'T')}Z"):
            assert find(text) == f"/block/-1:8000000000000000:{seqno}"
    assert find(f"{datetime.fromtimestamp(newest + 1, UTC):%Y-%m-%d %H:%M:%S}") is None
    assert find("2026-13-01 10:00") is None


@pytest.mark.parametrize(
    "text", ["nothing", "no.such.domain.ton", "f" * 64, "x" * 5000, "9" * 10, "<b>&</b>", "%", "é"]
)
def test_what_is_not_there_is_said(client: TestClient[Any], text: str) -> None:
    answer = client.get("/search", params={"q": text}, follow_redirects=False)
    assert answer.status_code == 404
    assert "No result for" in answer.text
    assert "<b>&" not in answer.text


def test_nothing_leads_to_the_start(client: TestClient[Any]) -> None:
    for query in ("", "?q=", "?q=%20"):
        answer = client.get(f"/search{query}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    ("text", "name", "page"),
    [
        ("Harbour Credit", "Harbour Credit (HARB)", "/jetton/"),
        ("harbour cr", "Harbour Credit (HARB)", "/jetton/"),
        ("bEaN", "Lighthouse Bean (BEAN)", "/jetton/"),
        ("harbour-club", "harbour-club.ton", "/nft/"),
    ],
)
def test_names_symbols_and_domains(
    client: TestClient[Any], text: str, name: str, page: str
) -> None:
    answer = client.get("/search", params={"q": text}, follow_redirects=False)
    assert answer.status_code == 200
    first = answer.text[answer.text.index('class="results"') :].partition("</li>")[0]
    assert f">{name}</a>" in first
    assert f'href="{page}' in first
    path = first.partition('href="')[2].partition('"')[0]
    assert client.get(path).status_code == 200


def test_collections_by_name(client: TestClient[Any]) -> None:
    found = client.get("/api/v3/nft/collections").json()["nft_collections"]
    named = [each for each in found if (each["collection_content"] or {}).get("name")]
    assert named
    for each in named:
        answer = client.get("/search", params={"q": each["collection_content"]["name"]})
        assert "NFT collection" in answer.text


def test_a_misspelt_name_is_suggested(client: TestClient[Any]) -> None:
    answer = client.get("/search", params={"q": "Harbor Credit"})
    assert answer.status_code == 404
    assert "Did you mean" in answer.text
    assert "Harbour Credit (HARB)" in answer.text


def test_beginnings_of_hashes(
    find: Callable[[str], str | None], client: TestClient[Any], demo_facts: Path
) -> None:
    row = _first(demo_facts, "transactions")
    assert find(row["hash"][:12].upper()) == f"/transaction/{row['hash']}"
    assert find(f"{row['hash'][:6]}…{row['hash'][-6:]}") == f"/transaction/{row['hash']}"
    assert find(row["in_msg_hash"][:16]) == f"/trace/{row['in_msg_hash']}"
    block = _first(demo_facts, "blocks")
    found = find(block["file_hash"][:20])
    assert found is not None
    assert found.endswith(f":{block['seqno']}")
    account = client.get("/search", params={"q": row["account"][:20]})
    assert "/account/" in str(account.url)
    wrong_end = f"{row['hash'][:12]}...{'0' * 20}"
    assert client.get("/search", params={"q": wrong_end}).status_code == 404


def test_beginnings_of_addresses(find: Callable[[str], str | None], demo_facts: Path) -> None:
    account = _first(demo_facts, "transactions")["account"]
    address = parse_address(f"0:{account}")
    for bounceable in (True, False):
        friendly = render_friendly(address, bounceable=bounceable, test_only=False)
        for text in (friendly[:14], f"{friendly[:5]}…{friendly[-5:]}", f"{friendly[:9]}..."):
            found = find(text)
            assert found is not None, text
            assert parse_address(found.removeprefix("/account/")) == address
        wrong = "A" if friendly[-1] != "A" else "B"
        assert find(f"{friendly[:9]}…{friendly[-4:-1]}{wrong}") is None
    raw = find(f"0:{account[:12]}")
    assert raw is not None
    assert parse_address(raw.removeprefix("/account/")) == address
    assert find(f"-1:{account[:12]}") is None


def test_labels_of_accounts_that_the_lake_has(client: TestClient[Any]) -> None:
    answer = client.get("/search", params={"q": "elector"})
    assert answer.status_code == 200
    assert f"/account/Ef8{'zM' * 22}0vF"[:30] in answer.text
    assert client.get("/search", params={"q": "pTON (STON.fi v1)"}).status_code == 404
