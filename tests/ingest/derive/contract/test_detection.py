"""Contracts of the demo node: as its lite server describes them, with and without a TVM."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.conftest import Facts
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract.stack import (
    AddrStd,
    Cell,
    Detection,
    Mismatch,
    Value,
    make_slice,
)
from tonlake.ingest.derive.contract.standard import (
    detect_item,
    detect_pool,
    detect_telemint,
    detect_wallet,
)
from tonlake.ingest.derive.tvm.call import TvmOpaque
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

Row = dict[str, Any]


@pytest.fixture(scope="module")
def lake(demo_lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(open_snapshot(demo_lake)) as connection:
        yield connection


def find_row(lake: duckdb.DuckDBPyConnection, table: str, address: str) -> Row:
    """Return the newest row of an account."""
    workchain, account = address.split(":")
    rows = lake.view(f"latest_{table}").filter(
        f"workchain = {workchain} and account = unhex('{account}')"
    )
    found = rows.fetchall()
    assert len(found) == 1, (table, address)
    return dict(zip(rows.columns, found[0], strict=True))


def test_domains_have_names_and_records(lake: duckdb.DuckDBPyConnection, facts: Facts) -> None:
    items = [each for each in facts.summary["contracts"] if each["kind"] == "dns_item"]
    assert items
    for item in items:
        row = find_row(lake, "dns_records", item["address"])
        assert row["domain"] == item["domain"]
        content = find_row(lake, "nft_items", item["address"])["content"]
        assert json.loads(content)["domain"] == item["domain"]
    pointed = lake.view("latest_dns_records").filter("wallet is not null").fetchall()
    assert pointed


def test_wallets_show_seqno_and_key(lake: duckdb.DuckDBPyConnection, facts: Facts) -> None:
    checked = 0
    for contract in facts.summary["contracts"]:
        if not contract["kind"].startswith("wallet") or contract["state"]["status"] != "active":
            continue
        row = find_row(lake, "wallets", contract["address"])
        for method, column in (("seqno", "seqno"), ("get_public_key", "public_key")):
            expected = contract["get_methods"].get(method)
            if expected and expected["exit_code"] == 0:
                known = row[column]
                number = int.from_bytes(known) if isinstance(known, bytes) else known
                assert number == int(expected["stack"][0]["int"])
                checked += 1
    assert checked > 20


def test_transfers_match_the_sent_messages(lake: duckdb.DuckDBPyConnection) -> None:
    """Successful transfers changed the balance of the wallet by their amount."""
    rows = lake.execute(
        "select t.amount, b.balance - w.balance from jetton_transfers t "
        "join jetton_wallets w using (workchain, account, mc_seqno) "
        "asof join jetton_wallets b on b.account = t.account and b.mc_seqno < t.mc_seqno "
        "where not t.aborted and (select count(*) from account_states a "
        "join transactions x on x.account = a.account and x.mc_seqno = a.mc_seqno "
        "where a.account = t.account and a.mc_seqno = t.mc_seqno) = 1"
    ).fetchall()
    assert len(rows) > 10
    assert all(amount == spent for amount, spent in rows)


def test_interfaces_name_every_code(lake: duckdb.DuckDBPyConnection) -> None:
    unnamed = lake.execute(
        "select count(*) from account_states where code_hash is not null "
        "and code_hash not in (select code_hash from interfaces)"
    ).fetchall()
    assert unnamed == [(0,)]
    names = lake.execute("select distinct unnest(names) from interfaces").fetchall()
    assert {"jetton_wallet_v1", "jetton_master", "wallet_v4r2"} <= {name for (name,) in names}


ME, OTHER = AddrStd(0, bytes(32)), AddrStd(0, b"1" * 32)
_BUILDER = CellBuilder()
CELL = Cell(_BUILDER.tree, _BUILDER.end())


def drive(detection: Detection, **answers: list[Any]) -> list[Row]:
    """Return the rows of a detector that is given these answers, and fails with other methods."""
    question = next(detection)
    try:
        while True:
            assert question.method in answers or not question.required
            question = detection.send(answers.get(question.method))
    except StopIteration as end:
        return [finding.fields for finding in end.value]


@pytest.mark.parametrize("shape", [[], [1, 2], [CELL, CELL], [make_slice(0xFF, 8)]])
def test_an_optional_answer_of_another_shape_leaves_the_row(shape: list[Any]) -> None:
    named: list[Any] = [ME.slice()]
    data: list[Any] = [5, OTHER.slice(), OTHER.slice(), CELL]
    wallet = {"get_wallet_data": data, "get_wallet_address": named}
    (plain,) = drive(detect_wallet(ME), **wallet)
    assert drive(detect_wallet(ME), **wallet, is_claimed=shape) == [plain]
    data = [-1, 7, OTHER.slice(), OTHER.slice(), CELL]
    item = {"get_nft_data": data, "get_nft_address_by_index": named}
    (plain,) = drive(detect_item(None, ME), **item)
    for method in ("get_domain", "get_full_domain", "get_nft_content"):
        assert drive(detect_item(None, ME), **item, **{method: shape}) == [plain]
    domain: dict[str, list[Any]] = {"get_domain": [make_slice(0x61, 8)]}
    found = drive(detect_item(None, ME), **item, **domain)
    assert (len(found), found[1]["domain"]) == (2, "a.ton")
    assert drive(detect_item(None, ME), **item, **domain, dnsresolve=shape) == found


@pytest.mark.parametrize("value", [None, 7, CELL, (), (7, CELL), TvmOpaque()])
def test_what_should_be_a_slice_can_be_any_value(value: Value) -> None:
    """Anyone can deploy such a contract: it must not end the ingest of all others."""
    item: dict[str, list[Any]] = {
        "get_telemint_auction_state": [ME.slice(), 1, 2, 3, 4],
        "get_telemint_auction_config": [0, 1, 2, 3, 4, 5],
        "royalty_params": [1, 100, ME.slice()],
    }
    (row,) = drive(detect_telemint(ME), **item, get_telemint_token_name=[make_slice(0x61, 8)])
    assert next(iter(row["details"].values())) == "a"
    with pytest.raises(Mismatch):
        drive(detect_telemint(ME), **item, get_telemint_token_name=[value])
    for assets in ([value, make_slice(0, 4)], [make_slice(0, 4), value]):
        with pytest.raises(Mismatch):
            drive(detect_pool(ME), get_assets=assets)
