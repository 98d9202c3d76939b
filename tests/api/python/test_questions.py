"""Ten everyday questions in one line of Python give the same rows as two lines of SQL.

``tests/lake/duck/test_questions.py`` compares the views of these lines with plain Python.
"""

# ruff: noqa: S608 - the addresses are the test's own
import json

import pytest

import tonlake
from tests.api.v3.scene import Scene, make_raw

BEAN = "EQC7Iv1CYbiA9FMWnUoJoZvIsokB99ym2wkocd7VlKwEsMeP"
ELECTOR = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
UTIME = 1_700_006_400 // 86_400 * 86_400

PAIRS = {
    "active wallets": (
        'lake.query("active_wallets")',
        "select date, active_wallets, active_accounts, transactions from v_daily order by date",
    ),
    "DEX volume by pool and day": (
        'lake.query("dex_volume")',
        """select time::date, dex, pool, pool_label, count(*), count(distinct sender),
        sum(value_ton) from v_swaps where success group by all order by 1 desc, 7 desc, pool""",
    ),
    "holders at a date": (
        f'lake.query("jetton_holders", master="{BEAN}", at="2026-11-21T04:20", limit=1000)',
        f"""select * exclude (workchain, account, jetton_wallet_workchain, jetton_wallet_id) from
        jetton_holders('{BEAN}', at := '2026-11-21 04:20') order by balance desc, address""",
    ),
    "jetton transfers with comment": (
        'lake.query("commented_transfers", limit=1000)',
        """select time, sender, recipient, jetton, symbol, amount, comment, tx_hash from
        v_jetton_transfers where comment <> '' and success order by time desc, lt desc, tx_hash""",
    ),
    "NFT sales": (
        'lake.query("nft_purchases", limit=1000)',
        """select time, event, item, collection, collection_name, seller, buyer, price, marketplace,
        trace_id from v_nft_sales order by time desc, lt desc, item""",
    ),
    "gas by contract": (
        'lake.query("gas_by_contract", limit=10000)',
        """select address, label, count(*), sum((not success)::int), sum(gas_used)::bigint, sum(fee)
        from v_transactions group by all order by 5 desc nulls last, address""",
    ),
    "failures by code": (
        'lake.query("failures")',
        """select failed_phase, exit_code, exit_words, count(*), count(distinct address), sum(fee)
        from v_transactions where not success group by all order by 4 desc, 1, 2, 3""",
    ),
    "new contracts by code": (
        'lake.query("new_contracts")',
        """select code_hash, interfaces, count(*), min(time), max(time)
        from v_new_contracts group by all order by 3 desc, 1""",
    ),
    "whales": (
        'lake.query("whales", limit=20)',
        """select address, coalesce(label, '-'), balance
        from v_accounts order by balance desc, address limit 20""",
    ),
    "balance history": (
        f'lake.query("balance_history", account="{ELECTOR}")',
        f"""select time, asset, symbol, balance, balance_units
        from v_balances where account = ton_account('{ELECTOR}') order by mc_seqno, lt""",
    ),
}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> tonlake.Lake:
    """A lake of swaps and sales, of which the demo has none."""
    scene = Scene(2)
    content = json.dumps({"symbol": "CAT", "decimals": "6"})
    scene.put_state("jetton_masters", "cat", 1, content=content, total_supply=1)
    for at in range(12):
        event = {
            "trace_id": "trace",
            "action_id": f"action {at}",
            "mc_seqno": 1,
            "end_lt": at,
            "end_utime": UTIME + at * 30_000,
            "success": at != 5,
        }
        scene.put(
            "dex_swaps",
            **event,
            dex="dedust",
            pool=make_raw(f"pool {at % 2}"),
            sender=make_raw("ann"),
            amount_in=10**10 + at,
            asset_out=make_raw("cat"),
            amount_out=1000,
            hops=1,
        )
        scene.put("nft_sales_events", **event, event="nft_purchase", item=make_raw("nft"), price=at)
    return tonlake.open(scene.commit(tmp_path_factory.mktemp("market")))


@pytest.mark.parametrize("question", PAIRS)
def test_one_line_of_python_gives_the_rows_of_the_sql(
    lake: tonlake.Lake, market: tonlake.Lake, question: str
) -> None:
    line, statement = PAIRS[question]
    assert "\n" not in line
    assert statement.count("\n") <= 1
    places = {"DEX volume by pool and day": market, "NFT sales": market}
    place = places.get(question, lake)
    rows = eval(line, {"lake": place}).fetchall()  # noqa: S307 - the lines above
    expected = place.sql(statement).fetchall()
    if question == "whales":  # v_accounts has labels of codes as well
        assert [(row[0], row[2]) for row in rows] == [(row[0], row[2]) for row in expected]
    else:
        assert rows == expected
    assert rows


def test_the_volume_of_swaps_is_that_by_hand(market: tonlake.Lake) -> None:
    volumes = market.query("dex_volume").fetchall()
    assert sum(row[4] for row in volumes) == 11
    assert sum(row[6] for row in volumes) * 10**9 == sum(10**10 + at for at in range(12) if at != 5)
