"""A lake with holes and without a beginning claims nothing that it cannot know."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient

from tests.api.v2.conftest import Asker
from tests.conftest import Facts
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.span import Span

MASTER = -(1 << 63)
CONFIG_ACCOUNT = "-1:" + "55" * 32
GENESIS = "-1:" + "00" * 32
NEVER_SEEN = "0:" + "ab" * 32
SPANS = (Span(60, 90), Span(150, 238))
SEQNO_UNKNOWN = (500, "LITE_SERVER_NOTREADY: seqno not in db")


@pytest.fixture(scope="module")
def part(
    demo_node: Path, asker: type[Asker], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    """Ask the API over a lake of two ranges of the demo node, neither with the zero state."""
    lake_dir = tmp_path_factory.mktemp("partial-lake")
    for span in SPANS:
        ingest_node(demo_node, lake_dir, Settings(), span.first, span.last)
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        yield asker(client)


def _in_spans(seqno: int) -> bool:
    return any(span.first <= seqno <= span.last for span in SPANS)


def test_blocks_outside_are_unknown(part: Asker) -> None:
    for seqno in (1, 59, 91, 149, 239):
        assert part.refused("shards", seqno=seqno) == SEQNO_UNKNOWN
        assert part.refused("lookupBlock", workchain=-1, shard=MASTER, seqno=seqno) == SEQNO_UNKNOWN
        assert part.refused("getAddressBalance", address=GENESIS, seqno=seqno) == SEQNO_UNKNOWN
    for seqno in (60, 90, 150, 238):
        assert part("lookupBlock", workchain=-1, shard=MASTER, seqno=seqno)["seqno"] == seqno


def test_a_block_is_first_only_if_the_one_before_is_known(part: Asker, facts: Facts) -> None:
    masters = {row["seqno"]: row for row in facts.blocks if row["workchain"] == -1}
    where = {"workchain": -1, "shard": MASTER}
    for seqno in [*range(1, 239, 7), 59, 60, 90, 91, 149, 150]:
        lt, utime = (
            masters[seqno][name] for name in (("start_lt", "end_lt")[seqno % 2], "gen_utime")
        )
        if _in_spans(seqno):
            assert part("lookupBlock", **where, lt=lt)["seqno"] == seqno
        if _in_spans(seqno - 1) and _in_spans(seqno):
            assert part("lookupBlock", **where, unixtime=utime)["seqno"] == seqno
        else:  # the block before may be of the same second
            assert part.refused("lookupBlock", **where, unixtime=utime)[1].endswith("ts not in db")
        if not _in_spans(seqno):
            assert part.refused("lookupBlock", **where, lt=lt)[1].endswith("lt not in db")


def test_an_account_not_touched_in_the_range_is_not_called_empty(part: Asker) -> None:
    for params in ({}, {"seqno": 200}, {"seqno": 70}):
        for method in ("getAddressInformation", "getAddressState", "getWalletInformation"):
            status, text = part.refused(method, address=NEVER_SEEN, **params)
            assert status == 500
            assert text.startswith("LITE_SERVER_ERROR: state already gc'd")
            assert "60..90, 150..238" in text
    assert part.refused("getTransactions", address=NEVER_SEEN)[0] == 500


def test_known_states_equal_those_of_the_complete_lake(
    part: Asker, ask: Asker, facts: Facts
) -> None:
    known = 0
    for account in facts.accounts:
        workchain, digits = account["address"].split(":")
        history = facts.history(int(workchain), digits)
        for span in SPANS:
            touched = any(span.first <= row["mc_seqno"] <= span.last for row in history)
            answer = part.raw("getAddressBalance", address=account["address"], seqno=span.last)
            if touched:
                known += 1
                expected = ask("getAddressBalance", address=account["address"], seqno=span.last)
                assert answer.json()["result"] == expected
            else:
                assert answer.status_code == 500
    assert known > 30


def test_code_that_the_lake_lacks_is_an_error(part: Asker, ask: Asker) -> None:
    """The code of the configuration account came with the zero state and never again."""
    status, text = part.refused("getAddressInformation", address=CONFIG_ACCOUNT)
    assert status == 500
    assert "state already gc'd" in text
    assert part("getAddressState", address=CONFIG_ACCOUNT) == "active"
    assert ask("getAddressInformation", address=CONFIG_ACCOUNT)["code"]


def test_histories_stop_at_the_hole(part: Asker, facts: Facts) -> None:
    digits = "906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
    history = facts.history(0, digits)
    newer = [row for row in history if row["mc_seqno"] >= 150]
    assert any(91 <= row["mc_seqno"] < 150 for row in history)
    answer = part.raw("getTransactions", address=f"0:{digits}", limit=1000)
    found = answer.json()["result"]
    assert [tx["transaction_id"]["lt"] for tx in found] == [str(row["lt"]) for row in newer]
    assert "60..90, 150..238" in answer.headers["x-tonlake-warning"]
    last = found[-1]["transaction_id"]
    status, text = part.refused(
        "getTransactions", address=f"0:{digits}", lt=last["lt"], hash=last["hash"]
    )
    assert status == 500
    assert text.startswith("LITE_SERVER_NOTREADY: lt not in db")
    alone = part(
        "getTransactions", address=f"0:{digits}", lt=last["lt"], hash=last["hash"], limit=1
    )
    assert alone == found[-1:]
    older = [row for row in history if 60 <= row["mc_seqno"] <= 90]
    page = part(
        "getTransactions",
        address=f"0:{digits}",
        lt=older[0]["lt"],
        hash=older[0]["hash"],
        to_lt=older[-1]["lt"] - 1,
        limit=1000,
    )
    assert [tx["transaction_id"]["lt"] for tx in page] == [str(row["lt"]) for row in older]


def test_a_history_does_not_begin_before_the_hole(
    demo_node: Path, asker: type[Asker], facts: Facts, tmp_path: Path
) -> None:
    older, newest = Span(60, 90), Span(220, 238)
    for span in (older, newest):
        ingest_node(demo_node, tmp_path, Settings(), span.first, span.last)
    refused = 0
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        for account in facts.accounts:
            workchain, digits = account["address"].split(":")
            seqnos = [row["mc_seqno"] for row in facts.history(int(workchain), digits)]
            if any(older.first <= seqno <= older.last for seqno in seqnos) and (
                max(seqnos) < newest.first
            ):
                refused += 1
                status, text = asker(client).refused("getTransactions", address=account["address"])
                assert status == 500
                assert text.startswith("LITE_SERVER_NOTREADY: lt not in db")
    assert refused > 10


def test_the_configuration_needs_its_key_block(part: Asker) -> None:
    for method, params in (("getConfigAll", {}), ("getConfigParam", {"param": 0})):
        status, text = part.refused(method, **params)
        assert status == 500
        assert "key block 0" in text


def test_masterchain_info_of_a_lake_without_beginning(part: Asker) -> None:
    found = part("getMasterchainInfo")
    assert found["last"]["seqno"] == 238
    assert found["init"]["seqno"] == 0
