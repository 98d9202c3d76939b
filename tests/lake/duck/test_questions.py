"""Everyday questions in two lines of SQL, compared with plain Python over the Parquet files."""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import DuckDBPyConnection

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema import ARROW_TYPES
from tonlake.lake.schema.dictionary import VIEWS, View

Rows = list[dict[str, Any]]
NANO = Decimal(1_000_000_000)


def read(snapshot: Snapshot, table: str) -> Rows:
    """Return the rows of a table, read from its files."""
    paths = [snapshot.lake_dir / file.path for file in snapshot.files[table]]
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def ask(connection: DuckDBPyConnection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a statement of at most two lines."""
    assert statement.count("\n") <= 1
    return connection.execute(statement, values).fetchall()


def raw(workchain: int, account: bytes) -> str:
    return f"{workchain}:{account.hex().upper()}"


def at(unix_seconds: int) -> datetime:
    return datetime.fromtimestamp(unix_seconds, UTC).replace(tzinfo=None)


def newest(rows: Rows, *order: str) -> dict[str, dict[str, Any]]:
    """Return the newest row of each account, by its address."""
    found: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: [row[name] for name in order]):
        found[raw(row["workchain"], row["account"])] = row
    return found


def read_jettons(snapshot: Snapshot) -> dict[str, tuple[str | None, int | None]]:
    """Return symbol and decimals of each jetton; no content of this lake was fetched from a URI."""
    found = {}
    for address, row in newest(read(snapshot, "jetton_masters"), "mc_seqno").items():
        content = json.loads(row["content"] or "{}")
        default = None if "uri" in content or row["content"] is None else 9
        decimals = int(content["decimals"]) if "decimals" in content else default
        found[address] = content.get("symbol"), decimals
    return found


def scale(units: int | Decimal, decimals: int | None) -> Decimal | None:
    """Return an amount in whole units; None if it needs more than 29 digits."""
    if decimals is None:
        return None
    scaled = Decimal(units).scaleb(-decimals)
    return scaled.quantize(1 / NANO) if abs(scaled) < 10**29 else None


def test_active_wallets(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    accounts, wallets = defaultdict(set), defaultdict(set)
    for row in read(snapshot, "transactions"):
        accounts[row["time"].date()].add((row["workchain"], row["account"]))
    for row in read(snapshot, "messages"):
        if row["kind"] == "ext_in" and row["direction"] == "in":
            key = (row["destination_workchain"], row["destination"])
            wallets[at(row["now"]).date()].add(key)
    expected = [(day, len(wallets[day]), len(accounts[day])) for day in sorted(accounts)]
    question = "select date, active_wallets, active_accounts from v_daily order by date"
    assert ask(connection, question) == expected


def test_totals_of_a_day(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    rows = read(snapshot, "transactions")
    moved = [row for row in read(snapshot, "messages") if row["direction"] == "in"]
    transfers = [row for row in read(snapshot, "jetton_transfers") if not row["aborted"]]
    question = """select sum(transactions), sum(failed), sum(fees), sum(gas_used), sum(messages),
        sum(ton_volume), sum(jetton_transfers), sum(swaps) from v_daily"""
    assert ask(connection, question) == [
        (
            len(rows),
            sum(row["aborted"] or False for row in rows),
            sum(row["total_fees"] for row in rows) / NANO,
            sum(row["compute_gas_used"] or 0 for row in rows),
            len(moved),
            sum(row["value"] or 0 for row in moved) / NANO,
            len(transfers),
            0,
        )
    ]


def test_holders_at_a_date(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    jettons, rows = read_jettons(snapshot), read(snapshot, "jetton_wallets")
    counts = Counter(raw(row["jetton_workchain"], row["jetton"]) for row in rows)
    for master in [address for address, _ in counts.most_common(3)]:
        own = [row for row in rows if raw(row["jetton_workchain"], row["jetton"]) == master]
        times = sorted(row["utime"] for row in own)
        decimals = jettons[master][1]
        for until in (times[0] - 1, times[len(times) // 2], times[-1]):
            wallets = newest([row for row in own if row["utime"] <= until], "mc_seqno").values()
            expected = sorted(
                (raw(row["owner_workchain"], row["owner"]), scale(row["balance"], decimals))
                for row in wallets
                if row["balance"]
            )
            question = "select address, balance from jetton_holders($1, at := $2) order by all"
            assert ask(connection, question, master, at(until)) == expected
        friendly = "select ton_friendly(ton_workchain($1), ton_account($1))"
        question = "select address, balance from jetton_holders($1) order by all"
        assert ask(connection, question, ask(connection, friendly, master)[0][0]) == expected


def test_jetton_transfers_with_comment(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    jettons = read_jettons(snapshot)
    bodies = {row["body_hash"]: row["decoded"] for row in read(snapshot, "message_bodies")}
    received = {
        row["tx_hash"]: json.loads(bodies[row["body_hash"]] or "{}")
        for row in read(snapshot, "messages")
        if row["direction"] == "in"
    }
    expected = []
    for row in read(snapshot, "jetton_transfers"):
        payload = received[row["tx_hash"]].get("forward_payload", {}).get("value", {})
        if payload.get("@type") == "text_comment":
            symbol, decimals = jettons[raw(row["jetton_workchain"], row["jetton"])]
            sender = raw(row["source_workchain"], row["source"])
            recipient = raw(row["destination_workchain"], row["destination"])
            amount = scale(row["amount"], decimals)
            line = (at(row["now"]), sender, recipient, symbol, amount, payload["text"])
            expected.append(line)
    question = """select time, sender, recipient, symbol, amount, comment
        from v_jetton_transfers where comment is not null"""
    assert sorted(ask(connection, question), key=repr) == sorted(expected, key=repr)
    assert len(expected) > 10


def test_gas_by_contract(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    gas: Counter[str] = Counter()
    for row in read(snapshot, "transactions"):
        gas[raw(row["workchain"], row["account"])] += row["compute_gas_used"] or 0
    expected = sorted(gas.items(), key=lambda each: (-each[1], each[0]))[:10]
    question = """select address, sum(gas_used) as gas from v_transactions group by address
        order by gas desc nulls last, address limit 10"""
    assert ask(connection, question) == expected


def test_failures_by_code(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    codes: Counter[tuple[str, int | None]] = Counter()
    for row in read(snapshot, "transactions"):
        if row["aborted"]:
            is_action = row["action_success"] is False
            code = row["action_result_code"] if is_action else row["compute_exit_code"]
            codes["action" if is_action else "compute", code] += 1
    question = """select failed_phase, exit_code, count(*) from v_transactions
        where not success group by all"""
    found = ask(connection, question)
    assert {(phase, code): count for phase, code, count in found} == codes
    words = "select distinct exit_words from v_transactions where exit_code = 37 and not success"
    assert ask(connection, words) == [("not enough TON",)]


def test_new_contracts_by_code(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    states = {
        (row["workchain"], row["account"], row["mc_seqno"], row["block_seqno"]): row["code_hash"]
        for row in read(snapshot, "account_states")
    }
    codes = Counter(
        states[row["workchain"], row["account"], row["mc_seqno"], row["block_seqno"]]
        for row in read(snapshot, "transactions")
        if row["orig_status"] in {"uninit", "nonexist"} and row["end_status"] == "active"
    )
    question = "select code_hash, count(*) from v_new_contracts group by code_hash"
    assert dict(ask(connection, question)) == codes
    by_day = [
        json.loads(text) for (text,) in ask(connection, "select new_contracts_by_code from v_daily")
    ]
    assert sum(sum(day.values()) for day in by_day) == sum(codes.values()) > 10


def test_whales(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    states = newest(read(snapshot, "account_states"), "mc_seqno", "block_seqno")
    expected = sorted(
        ((address, row["balance"] / NANO) for address, row in states.items()),
        key=lambda each: (-each[1], each[0]),
    )[:20]
    question = "select address, balance from v_accounts order by balance desc, address limit 20"
    assert ask(connection, question) == expected


def test_balance_history(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    rows = read(snapshot, "account_states")
    busiest = Counter((row["workchain"], row["account"]) for row in rows).most_common(1)[0][0]
    expected = [
        (at(row["utime"]), row["balance"] / NANO)
        for row in sorted(rows, key=lambda row: (row["mc_seqno"], row["block_seqno"]))
        if (row["workchain"], row["account"]) == busiest
    ]
    question = """select time, balance from v_balances where address = $1 and asset is null
        order by mc_seqno, block_seqno"""
    assert ask(connection, question, raw(*busiest)) == expected


def test_balances_at_a_time(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    rows = read(snapshot, "account_states")
    until = sorted(row["utime"] for row in rows)[len(rows) // 2]
    past = newest([row for row in rows if row["utime"] <= until], "mc_seqno", "block_seqno")
    question = "select address, balance_units from balances_at($1) where asset is null"
    found = ask(connection, question, at(until))
    assert dict(found) == {address: row["balance"] for address, row in past.items()}
    assert len(found) == len(past)


def test_every_transfer_in_one_shape(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    kinds: Counter[str] = Counter()
    nano = 0
    for row in read(snapshot, "messages"):
        if row["direction"] == "in" and row["kind"] == "int":
            kinds["ton"] += row["value"] > 0
            nano += row["value"]
            kinds["extra_currency"] += len(json.loads(row["value_extra_currencies"] or "{}"))
    for kind, table in (("jetton", "jetton_transfers"), ("nft", "nft_transfers")):
        kinds[kind] = sum(not row["aborted"] for row in read(snapshot, table))
    question = "select kind, count(*) from v_transfers group by kind"
    assert dict(ask(connection, question)) == {
        kind: count for kind, count in kinds.items() if count
    }
    total = "select sum(amount) from v_transfers where kind = 'ton'"
    assert ask(connection, total) == [(nano / NANO,)]


def test_a_message_has_one_row(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    rows = read(snapshot, "messages")
    consumed = {row["msg_hash"] for row in rows if row["direction"] == "in"}
    sent = {row["msg_hash"] for row in rows if row["direction"] == "out"} - consumed
    ends = sum(row["direction"] == "in" for row in rows) + len(sent)
    assert ask(connection, "select count(*) from v_messages") == [(ends,)]
    bodies = {row["body_hash"]: row for row in read(snapshot, "message_bodies")}
    comments = Counter(
        json.loads(bodies[row["body_hash"]]["decoded"] or "{}").get("comment")
        for row in rows
        if (row["direction"] == "in" or row["msg_hash"] in sent)
        and row["kind"] != "ext_in"
        and bodies.get(row["body_hash"], {}).get("decoded_opcode") == "text_comment"
    )
    comments.pop(None, None)
    question = """select comment, count(*) from v_messages
        where opcode_name = 'text_comment' and comment is not null group by comment"""
    assert dict(ask(connection, question)) == comments


@pytest.mark.parametrize(
    "view", ["v_transactions", "v_messages", "v_jetton_transfers", "v_transfers"]
)
def test_a_row_names_its_trace(
    snapshot: Snapshot, connection: DuckDBPyConnection, view: str
) -> None:
    traces = {row["hash"]: row["trace_id"] for row in read(snapshot, "transaction_traces")}
    found = ask(connection, f"select tx_hash, trace_id from {view}")  # noqa: S608 - ours
    assert found == [(tx_hash, traces[tx_hash]) for tx_hash, _ in found]
    assert len(found) > 10


def test_the_state_after_a_transaction(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    states = {
        (row["account"], row["hash"], row["last_trans_lt"]): (row["balance"], row["code_hash"])
        for row in read(snapshot, "account_states")
    }
    expected = {}
    for row in read(snapshot, "transactions"):
        state = row["account"], row["account_state_hash_after"], row["lt"]
        expected[row["hash"]] = states.get(state, (None, None))
    question = "select tx_hash, balance_after_units, code_hash_after from v_transactions"
    assert {tx_hash: tuple(after) for tx_hash, *after in ask(connection, question)} == expected
    assert 0 < sum(balance is None for balance, _ in expected.values()) < len(expected) / 2


def test_mints_of_jettons(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    """Compared with those that the classifier finds."""
    columns = ("trace_id", "asset", "destination", "destination_secondary", "amount", "success")
    expected = [
        tuple(row[name] for name in columns)
        for row in read(snapshot, "actions")
        if row["type"] == "jetton_mint" and row["destination_secondary"]
    ]
    question = """select trace_id, jetton, recipient, jetton_wallet, amount_units, success
        from v_jetton_transfers where kind = 'mint' and sender is null"""
    assert sorted(ask(connection, question)) == sorted(expected)
    assert len(expected) > 1


def test_how_accounts_began(snapshot: Snapshot, connection: DuckDBPyConnection) -> None:
    sources = {
        row["tx_hash"]: row["source"] and raw(row["source_workchain"], row["source"])
        for row in read(snapshot, "messages")
        if row["direction"] == "in"
    }
    deployed: dict[str, datetime] = {}
    funded: dict[str, tuple[str | None, datetime]] = {}
    for row in sorted(read(snapshot, "transactions"), key=lambda row: row["lt"]):
        address = raw(row["workchain"], row["account"])
        before, after = row["orig_status"], row["end_status"]
        if after == "active" and before in {"nonexist", "uninit"}:
            deployed.setdefault(address, row["time"])
        if before == "nonexist" and after in {"uninit", "active"}:
            funded.setdefault(address, (sources[row["hash"]], row["time"]))
    question = "select address, deployed_at from v_accounts where deployed_at is not null"
    assert dict(ask(connection, question)) == deployed
    question = """select address, first_funded_by, first_funded_at from v_accounts
        where first_funded_at is not null"""
    assert {address: tuple(rest) for address, *rest in ask(connection, question)} == funded
    assert min(len(deployed), len(funded)) > 10


SHOWN_TYPES = {
    name: pa.binary() if kind == pa.binary(32) else kind for name, kind in ARROW_TYPES.items()
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_views_have_the_columns_of_their_description(
    connection: DuckDBPyConnection, view: View
) -> None:
    arguments = {"balances_at": "(now()::timestamp)", "jetton_holders": f"('0:{'CD' * 32}')"}
    found = connection.sql(f"from {view.name}{arguments.get(view.name, '')}")
    assert found.columns == [column.name for column in view.columns]
    schema = found.limit(1).to_arrow_table().schema
    expected = pa.schema([(each.name, SHOWN_TYPES[each.type]) for each in view.columns])
    assert schema.types == expected.types


def test_a_statement_makes_the_views_that_it_needs(snapshot: Snapshot) -> None:
    names = "select view_name from duckdb_views() where view_name in ('v_swaps', 'v_daily')"
    for statement, expected in (
        ("select 1", []),
        ("FROM V_SWAPS", ["v_swaps"]),
        ("show tables", ["v_daily", "v_swaps"]),
    ):
        made = connect(snapshot, statement=statement).execute(names).fetchall()
        assert sorted(name for (name,) in made) == expected
