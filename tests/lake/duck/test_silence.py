"""Statements that would find nothing without an error, and lakes that do not know all accounts."""

import re
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection

from tonlake.lake.duck.answer import ask
from tonlake.lake.duck.silence import list_notes
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.schema import TABLES, Table
from tonlake.lake.schema.dictionary import VIEWS, View

RAW = "0:" + "AB" * 32
FRIENDLY = "EQCrq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq8Uk"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from messages where kind = 'internal'", "one of int, ext_in, ext_out, never 'internal'"),
        ("from messages m where 'IN' = m.direction", "direction is one of in, out"),
        ("from latest_account_states where account_status <> 'Active'", "one of uninit"),
        ("with a as (from v_accounts) from a where status in ('active', 'dead')", "never 'dead'"),
        ("from messages join v_transfers t using (tx_hash) where t.kind = 'TON'", "ton, extra"),
        (f"from v_transfers where sender = '{FRIENDLY}'", f"write '{RAW}' in place of"),
        (f"from v_transfers where recipient in ('{RAW.lower()}')", f"write '{RAW}'"),
        ("from actions where source is not distinct from 'foundation.ton'", "raw addresses"),
        (f"from v_balances where asset = '{FRIENDLY}'", f"write '{RAW}'"),
        (f"from transactions where account = '{FRIENDLY}'", f"write ton_account('{FRIENDLY}')"),
        (f"from transactions where hash = '{'ab' * 32}'", "write ton_hash("),
        ("from messages where body_hash = 'abcd'", "write unhex('abcd')"),
        ("from v_transfers where sender = $who", f"write '{RAW}'"),
        ("FROM Messages M WHERE m.KIND = 'internal'", "one of int, ext_in, ext_out, never 'inter"),
        (f"from latest('wallets') where account = '{RAW}'", "write ton_account("),
        (f"explain analyze from v_transfers where sender = '{FRIENDLY}'", f"write '{RAW}'"),
        (f"from v_transfers where sender = any(['{FRIENDLY}'])", f"write '{RAW}'"),
        (f"from v_transfers where sender in (select unnest(['{FRIENDLY}']))", f"write '{RAW}'"),
        (f"from v_transfers where sender in ['{FRIENDLY}', '']", f"write '{RAW}'"),
        (f"from v_transfers where sender = '{FRIENDLY}'::text", f"write '{RAW}'"),
        ("from v_transfers where sender = any($list)", f"write '{RAW}'"),
        ("from v_transfers where sender like 'EQ%'", "none begins with 'EQ'"),
        ("from v_transfers where sender ^@ '0:ab' or false", "none begins with '0:ab'"),
        (f"from actions where list_contains(accounts, '{FRIENDLY}')", f"write '{RAW}'"),
        (f"from actions where list_has_any(accounts, ['{FRIENDLY}'])", f"write '{RAW}'"),
        (f"from actions where ['{FRIENDLY}'] <@ accounts", f"write '{RAW}'"),
        (f"from actions where accounts[1] = '{FRIENDLY}'", f"write '{RAW}'"),
        (f"from actions where (type, source) = ('burn', '{RAW}')", "type is one of"),
        (f"from actions where (lt, source) in ((5, '{RAW}'), (6, '{FRIENDLY}'))", f"write '{RAW}'"),
        (f"from actions where '{FRIENDLY}' = any(accounts)", f"write '{RAW}'"),
        ("from messages where opcode = 3576854235", "never 3576854235: write -718113061"),
        ("from blocks where shard in (9223372036854775808)", "write -9223372036854775808"),
        ("from blocks where shard = '4000000000000000'", "write 4611686018427387904"),
        ("from messages where opcode = 3_576_854_235", "write -718113061"),
        ("from messages where opcode between 0 and 4294967295", "32 bits, never 4294967295"),
        ("from messages where opcode >= 2147483648", "32 bits, never 2147483648"),
        ("from messages where kind not between 'ext' and 'int'", "one of int, ext_in, ext_out"),
        (f"from v_transfers where sender between '{FRIENDLY}' and 'a'", f"write '{RAW}'"),
        (f"from blocks where root_hash > '{'ab' * 32}'", "write ton_hash("),
        ("from actions where type = 'JettonTransfer'", "type is one of jetton_transfer, "),
        ("from v_nft_events where action_type in ('NftPurchase')", "is one of auction_bid, "),
        ("from nft_sales_events where event <> 'sold'", "event is one of auction_bid, "),
        ("from wallets where kind = 'wallet v4 r2'", "kind is one of wallet_v"),
        ("from message_bodies where decoded_opcode = 'JettonTransfer'", "such as jetton_transfer"),
        ("from interfaces where list_contains(names, 'JettonMaster')", "such as jetton_transfer"),
        (f"from v_transfers where sender in (values ('{FRIENDLY}'))", f"write '{RAW}'"),
        (f"from v_transfers join (values ('{FRIENDLY}')) t(a) on sender = t.a", f"write '{RAW}'"),
        (f"from v_transfers, (values (1, '{FRIENDLY}')) t(a, b) where b = sender", f"'{RAW}'"),
        (f"from v_transfers join (values ('{FRIENDLY}')) t(sender) using (sender)", f"'{RAW}'"),
        (f"from v_transfers natural join (values ('{FRIENDLY}')) t(sender)", f"'{RAW}'"),
        (f"with w(a) as (values ('{FRIENDLY}')) from v_transfers, w where sender = a", f"'{RAW}'"),
        ("with w(a) as (values ($who)) from v_swaps where pool in (select a from w)", f"'{RAW}'"),
        ("with w as (values ('0:AB'), ($who)) from v_swaps where pool in (table w)", "not '0:AB'"),
        ("with w as (select '' as a union all select $who) from v_swaps, w where pool = a", "raw"),
        ("from transactions where hex(hash) = 'ab'", "hex() writes upper-case digits, never 'ab'"),
        ("from transactions where hex(hash) like 'ab%'", "hex() writes upper-case digits"),
        ("from v_comments where lower(comment) in ('a', 'B')", "lower() writes lower case"),
        ("from messages where ton_opcode(opcode) = '0xD53276DB'", "0x and lower-case digits"),
        ("from wallets where ton_friendly(workchain, account) = 'UQ'", "EQ or Ef and more"),
        ("from wallets where ton_address(workchain, account) = $who", "ton_address() writes 0:"),
        ("from messages m join (values ('internal')) t(kind) on t.kind = m.kind", "one of int,"),
        (f"from v_transfers where coalesce(sender, '') = '{FRIENDLY}'", f"write '{RAW}'"),
        ("with t as (select sender as a from v_swaps) from t where a = $who", f"write '{RAW}'"),
        ("select case source when $who then 1 end from actions", f"write '{RAW}'"),
        (f"from actions where len(list_filter(accounts, x -> x = '{FRIENDLY}')) > 0", "write '0:"),
        ("select count(*) filter (trim(sender) in ($who)) from v_transfers", f"write '{RAW}'"),
        ("select type from actions group by type having max(source) = $who", f"write '{RAW}'"),
        (f"from actions where accounts && ['{FRIENDLY}']", f"write '{RAW}'"),
        (f"from v_transfers where asset = '{FRIENDLY}'", f"write '{RAW}'"),
        ("from v_transfers where asset = 'TON'", "raw addresses"),
        (f"from labels where address = '{FRIENDLY}'", f"write '{RAW}'"),
        (f"from labels join v_swaps on pool = address and sender = '{FRIENDLY}'", f"'{RAW}'"),
        ("from actions where opcode = ton_opcode_number('0xAE42e5a4')", "write 2923619748, not -1"),
        ("from actions where opcode in (5, ton_opcode_number(2923619748))", "write 2923619748"),
        ("from actions where opcode = -718113061", "unsigned: write 3576854235"),
        ("from messages where opcode = '0xd53276db'", "write ton_opcode_number('0xd53276db')"),
        ("from v_accounts where interfaces = 'wallet'", "list_contains(interfaces, 'wallet')"),
        (f"from multisig_orders where '{FRIENDLY}' = any(signers)", f"write '{RAW}'"),
    ],
)
def test_what_no_row_can_equal_is_refused_with_the_cure(
    connection: DuckDBPyConnection, snapshot: Snapshot, statement: str, expected: str
) -> None:
    given = {"who": FRIENDLY, "list": ["", FRIENDLY]}
    named = {name: value for name, value in given.items() if f"${name}" in statement}
    with pytest.raises(QueryError) as refused:
        ask(connection, snapshot, statement, named)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    "statement",
    [
        f"from v_transfers where sender = '{RAW}' and kind = 'ton' and comment = 'internal'",
        f"from v_transfers where sender <> '' and sender_id = ton_account('{FRIENDLY}')",
        "select if(kind = 'int', 'internal', '-') as kind from messages where kind = 'internal'",
        "from (select 'internal' as kind) where kind = 'internal'",
        r"from transactions where hash = '\xAB' or account = unhex('abcd')",
        "from messages where kind like 'inter%'",
        f"from v_transfers where sender like '0:AB%' or sender = any(['{RAW}'])",
        "from v_transfers where contains(sender, 'ab') or starts_with(comment, 'EQ')",
        "from v_transfers where sender in (select sender from v_transfers where comment = 'EQ')",
        "from transactions where hash = 'abcdefghijklmnopabcdefghijklmnop'::blob",
        "explain analyze from messages where kind = 'int'",
        f"from actions where list_contains(accounts, '{RAW}') and opcode = 3576854235",
        f"from actions where (type, source) in (('jetton_burn', '{RAW}'), ('jetton_mint', ''))",
        "from messages, (values ('internal')) t(kind) where t.kind = 'internal' limit 1",
        "from (select ton_friendly(0, root_hash) as kind from blocks) where kind = 'internal'",
        f"from v_transfers, (values ('{FRIENDLY}')) t(a) where sender_id = ton_account(a)",
        f"with f(a) as (values ('{FRIENDLY}')), r(a) as (from f) from r, v_swaps where r.a = pool",
        "from v_transfers where sender between '0:' and '0:Z' or sender < 'EQ'",
        "from messages m join (values ('int', 1), ('old', 2)) t(kind, n) using (kind)",
        "from transactions where lt between 0 and 18446744073709551615",
        "from actions where type in ('jetton_transfer', 'extra_currency_transfer')",
        "from blocks where hex(root_hash) = 'AB' or hex(root_hash) like '%ab' or hex(seqno) > 'a'",
        "from wallets where contains(lower(kind), 'V') or lower(hex(account)) like 'ab%'",
        "from wallets where ton_friendly(0, account, bounceable := false) = 'UQ'",
        f"from v_transfers select '{FRIENDLY}' as name, ['{FRIENDLY}'] as names, count(*)",
        f"from v_transfers where lower(sender) = '{RAW.lower()}' or sender ilike '{RAW.lower()}'",
        f"from v_transfers where coalesce(comment, '') = '{FRIENDLY}'",
        f"from (values ('{FRIENDLY}')) t(a), wallets w where w.account = ton_account(trim(a))",
        f"from (values ('x')) t(a) where trim(a) = '{FRIENDLY}'",
        f"from v_transfers where asset in ('100', '{RAW}') or asset like '1%'",
        "from actions where opcode = ton_opcode_number('0x0f8a7ea5') or opcode > 4000000000",
        "from messages where opcode in (ton_opcode_number('0xae42e5a4'), -5)",
        "from messages where opcode in ('0x0f8a7ea5', '-5')",
        "from v_accounts where interfaces[1] = 'a' or 'a' in interfaces",
        f"from labels where category = 'dex' or label = '{FRIENDLY}'",
    ],
)
def test_other_comparisons_are_not(
    connection: DuckDBPyConnection, snapshot: Snapshot, statement: str
) -> None:
    ask(connection, snapshot, statement).read_all()


def test_columns_hold_what_the_schema_says(connection: DuckDBPyConnection) -> None:
    views = [view for view in VIEWS.values() if not view.parameters]
    tables: list[Table | View] = [*TABLES.values(), *views]
    checked = 0
    for table in tables:
        for column in table.columns:
            if not (column.values or column.is_address):
                continue
            rows = connection.execute(f'select distinct "{column.name}" from "{table.name}"')  # noqa: S608
            for (value,) in rows.fetchall():
                checked += 1
                if column.is_address:
                    for one in value if isinstance(value, list) else [value or RAW]:
                        assert re.fullmatch("-?[0-9]+:[0-9A-F]{64}", one), (column, value)
                else:
                    assert value in (None, *column.values), (table.name, column.name)
    assert checked > 100


@pytest.mark.parametrize("name", ["v_balances", "latest_jetton_wallets", "jetton_holders"])
def test_accounts_of_before_are_not_known(cut_lake: Path, snapshot: Snapshot, name: str) -> None:
    [note] = list_notes(open_snapshot(cut_lake), f"from {name} where balance > 0")
    assert note.startswith(f"{name} has only accounts that masterchain blocks 101..110 touched")
    assert not list_notes(snapshot, f"from {name}")
    assert not list_notes(open_snapshot(cut_lake), "from v_transfers")
