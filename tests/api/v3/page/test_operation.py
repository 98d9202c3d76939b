"""Lakes with a hole and without a beginning: data that may be in a gap is never called empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker, Facts
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.span import Span

NEVER_SEEN = "0:" + "ab" * 32
HOLED = (Span(1, 90), Span(150, 238))
LATE = (Span(150, 238),)


def _open_part(
    spans: tuple[Span, ...], demo_node: Path, factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    lake_dir = factory.mktemp("part")
    for span in spans:
        ingest_node(demo_node, lake_dir, Settings(), span.first, span.last)
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        yield Asker(client)


@pytest.fixture(scope="module")
def holed(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Ask a lake of two ranges, the first of them from the zero state on."""
    yield from _open_part(HOLED, demo_node, tmp_path_factory)


@pytest.fixture(scope="module")
def late(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Ask a lake of one range that begins in the middle."""
    yield from _open_part(LATE, demo_node, tmp_path_factory)


def _accounts(facts: Facts, *, current: bool) -> list[str]:
    """Return the accounts that the newest range touched, or those that only older blocks did."""
    newest = {row["address"] for row in facts.transactions if row["mc_seqno"] >= LATE[0].first}
    older = {row["address"] for row in facts.transactions if row["mc_seqno"] <= HOLED[0].last}
    return sorted(newest if current else older - newest)


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("transactions", {"account": NEVER_SEEN}),
        ("transactions", {"hash": "ab" * 32}),
        ("transactions", {"account": NEVER_SEEN, "end_utime": 4_000_000_000}),
        ("transactionsByMessage", {"msg_hash": "ab" * 32}),
        ("messages", {"msg_hash": "ab" * 32}),
        ("messages", {"source": NEVER_SEEN}),
        ("blocks", {"root_hash": "ab" * 32}),
        ("jetton/masters", {"admin_address": NEVER_SEEN}),
        ("jetton/wallets", {"owner_address": NEVER_SEEN}),
        ("jetton/transfers", {"owner_address": NEVER_SEEN}),
        ("jetton/burns", {"jetton_master": NEVER_SEEN}),
        ("nft/collections", {"owner_address": NEVER_SEEN}),
        ("nft/items", {"address": NEVER_SEEN}),
        ("nft/transfers", {"item_address": NEVER_SEEN}),
        ("nft/sales", {"address": NEVER_SEEN}),
        ("dns/records", {"domain": "nobody.ton"}),
        ("multisig/wallets", {"wallet_address": NEVER_SEEN}),
        ("multisig/orders", {"address": NEVER_SEEN}),
        ("vesting", {"wallet_address": NEVER_SEEN}),
    ],
)
def test_nothing_found_is_not_nothing_there(
    late: Asker, holed: Asker, ask: Asker, operation: str, params: dict[str, str | int]
) -> None:
    for part, covered in ((late, "150..238"), (holed, "1..90, 150..238")):
        status, text = part.refused(operation, **params)
        assert status == 404
        assert f"this lake covers only masterchain {covered}" in text
    assert next(iter(ask(operation, **params).values())) == []


def test_what_is_covered_may_be_empty(late: Asker, holed: Asker) -> None:
    block = late("masterchainInfo")["last"]
    inside = ({"mc_seqno": 200}, {"start_lt": block["start_lt"]}, {"lt": block["start_lt"]})
    for part in (late, holed):
        for span in ({"start_utime": block["gen_utime"]}, *inside):
            found = part("transactions", account=NEVER_SEEN, **span)
            assert found == {"transactions": [], "address_book": {}}
        assert part("transactions", offset=100_000)["transactions"] == []
    older = holed("masterchainInfo")["first"]["start_lt"]
    span = {"start_lt": older, "end_lt": int(older) + 1}
    assert holed("transactions", account=NEVER_SEEN, **span)["transactions"] == []
    assert holed.refused("transactions", account=NEVER_SEEN, start_lt=older)[0] == 404


def test_an_account_whose_state_is_known_is_no_token(late: Asker, facts: Facts) -> None:
    wallet = facts.contract("wallet_v5r1")["address"]
    assert wallet.upper() in {address.upper() for address in _accounts(facts, current=True)}
    for operation in ("jetton/wallets", "jetton/masters", "nft/items", "nft/sales"):
        assert next(iter(late(operation, address=wallet).values())) == []


def test_a_state_from_before_a_hole_is_not_called_the_newest(
    holed: Asker, ask: Asker, facts: Facts
) -> None:
    stale, current = _accounts(facts, current=False), _accounts(facts, current=True)
    assert len(stale) > 10
    assert len(current) > 10
    for operation in ("accountStates", "walletStates"):
        rows = next(iter(holed(operation, address=[*stale, *current], include_boc=False).values()))
        assert {row["address"] for row in rows} == set(current)
    for address in stale:
        status, text = holed.refused("addressInformation", address=address)
        assert status == 404
        assert "no block of masterchain 150..238 touched it" in text
    for address in current[:5]:
        assert holed("account", address=address) == ask("account", address=address)


def test_every_answer_of_a_late_lake_names_its_first_block(late: Asker) -> None:
    answer = late.client.get("/api/v3/topAccountsByBalance")
    assert answer.headers["x-tonlake-warning"] == (
        "this lake begins in the middle, it covers masterchain 150..238"
    )
