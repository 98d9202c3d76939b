"""An account in Python equals the API's answer, which other tests verify."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from litestar.testing import TestClient

import tonlake
from tonlake.api.errors import AddressInvalid, AnswerNotFound, NotCovered, RequestInvalid
from tonlake.api.python.account import Account
from tonlake.api.text.encoding import read_argument
from tonlake.ingest.derive.tvm.call import TvmSlice


@pytest.fixture(scope="module")
def holder(lake: tonlake.Lake) -> Account:
    """The owner of the most jettons."""
    ((owner,),) = lake.sql(
        "select ton_address(owner_workchain, owner) from latest_jetton_wallets"
        " group by all order by count(*) desc, 1 limit 1"
    ).fetchall()
    return lake.account(owner)


def ask(client: TestClient[Any], path: str) -> Any:
    answer = client.get(f"/api/v3/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_transactions_are_those_of_the_api(
    client: TestClient[Any], lake: tonlake.Lake, holder: Account
) -> None:
    found = holder.transactions(limit=7, offset=2).arrow()
    shown = ask(client, f"transactions?account={holder.raw}&limit=7&offset=2")["transactions"]
    assert [str(lt) for lt in found["lt"].to_pylist()] == [each["lt"] for each in shown]
    fees = [str(fee) for fee in found["total_fees"].to_pylist()]
    assert fees == [each["total_fees"] for each in shown]
    assert len(lake.account("0:" + "7" * 64).transactions()) == 0


def test_balances_are_those_of_the_api(client: TestClient[Any], holder: Account) -> None:
    held = {row[1]: row for row in holder.balances().fetchall()}
    state = ask(client, f"accountStates?address={holder.raw}")["accounts"][0]
    assert held.pop(None)[:4] == ("TON", None, Decimal(state["balance"]), 9)
    wallets = ask(
        client, f"jetton/wallets?owner_address={holder.raw}&exclude_zero_balance=true&limit=100"
    )["jetton_wallets"]
    amounts = {each["jetton"]: Decimal(each["balance"]) for each in wallets}
    assert {jetton: row[2] for jetton, row in held.items()} == amounts
    assert amounts
    for _asset, _jetton, amount, decimals, balance in held.values():
        assert balance == (None if decimals is None else float(amount.scaleb(-decimals)))


def test_balances_of_the_past_are_those_that_the_rows_give(
    lake: tonlake.Lake, holder: Account
) -> None:
    rows = lake.sql(
        "select mc_seqno, gen_utime, mc_seqno % 7 = 0 from blocks where workchain = -1"
        " order by seqno"
    ).fetchall()
    for seqno, utime, chosen in rows:
        if not chosen:
            continue
        ((expected,),) = lake.sql(
            "select coalesce(arg_max(balance, (mc_seqno, block_seqno)), 0) from account_states"
            " where ton_address(workchain, account) = $raw and mc_seqno <= $seqno",
            raw=holder.raw,
            seqno=seqno,
        ).fetchall()
        by_seqno = holder.balances(at=seqno).fetchall()
        assert by_seqno[0][2] == expected
        moment = datetime.fromtimestamp(utime, UTC)
        newest = max(other for other, at, _ in rows if at == utime)
        assert holder.state(newest).balance == holder.balances(at=moment).fetchall()[0][2]
    assert holder.balances(at=moment.isoformat()).fetchall() == by_seqno
    naive = moment.replace(tzinfo=None)
    assert holder.balances(at=naive).fetchall() == by_seqno
    with pytest.raises(NotCovered, match=r"covers masterchain 1\.\.238.*is before"):
        holder.balances(at=moment - timedelta(days=9))


def test_a_state_of_the_past_differs(holder: Account) -> None:
    first, last = holder.state(1), holder.state()
    assert not first.exists
    assert (first.balance, first.code_hash, first.mc_seqno) == (0, None, 1)
    assert last.exists
    assert last.mc_seqno == 238
    with pytest.raises(RequestInvalid, match="seqno should be positive"):
        holder.state(0)


@pytest.mark.usefixtures("tvm")
def test_get_methods_run(lake: tonlake.Lake, holder: Account) -> None:
    ((wallet, master),) = lake.sql(
        "select ton_address(workchain, account), ton_address(jetton_workchain, jetton)"
        " from latest_jetton_wallets where ton_address(owner_workchain, owner) = $raw limit 1",
        raw=holder.raw,
    ).fetchall()
    contract = lake.account(master)
    for argument in (holder.raw, holder.address):
        ran = contract.run("get_wallet_address", argument)
        assert (ran.exit_code, len(ran.stack)) == (0, 1)
        assert isinstance(ran.stack[0], TvmSlice)
        assert lake.account(ran.address() or "").raw == wallet
    supply = contract.run("get_jetton_data").stack[0]
    ((expected,),) = lake.sql(
        "select total_supply from latest_jetton_masters"
        " where ton_address(workchain, account) = $master",
        master=master,
    ).fetchall()
    assert supply == expected
    assert contract.run("no_such_method").exit_code == 11
    with pytest.raises(RequestInvalid, match="value 0 of the stack is not an address"):
        contract.run("get_jetton_data").address()
    with pytest.raises(TypeError, match="does not take float"):
        contract.run("get_wallet_address", 1.5)
    for large in (1 << 256, (1, [-(1 << 256) - 1])):
        with pytest.raises(RequestInvalid, match="more than the 257 bits"):
            contract.run("get_wallet_address", large)
    assert read_argument((holder.raw, [7])) == (read_argument(holder.raw), [7])


def test_a_negative_page_is_refused(holder: Account) -> None:
    for page in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(RequestInvalid, match="is negative"):
            holder.transactions(**page)


def test_domains_lead_to_wallets(lake: tonlake.Lake) -> None:
    domain, wallet = lake.sql(
        "select domain, ton_address(wallet_workchain, wallet) from latest_dns_records"
        " where wallet is not null order by domain limit 1"
    ).fetchall()[0]
    assert lake.account(domain).raw == wallet == lake.account(domain.upper()).raw
    with pytest.raises(AnswerNotFound, match=r"unknown-domain\.ton"):
        lake.account("unknown-domain.ton")
    with pytest.raises(AddressInvalid, match="not an address"):
        lake.account("something else")
    with pytest.raises(AddressInvalid, match="checksum"):
        lake.account("EQ" + "A" * 46)
