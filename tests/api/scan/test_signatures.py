"""Scans of signature tables give the same rows as SQL."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result

import tonlake
from tests import commands
from tonlake.api.python.lake import Lake
from tonlake.api.scan.opening import make_source
from tonlake.api.scan.query import Scan, TableScan
from tonlake.lake.settings import LakeSettings

# ruff: noqa: S608 - statements of names that are written here
TASKS = Path("/proc/self/task")
ORDER = "mc_seqno, tx_lt, tx_workchain, tx_account, created_lt nulls first"
TRANSFER = "transfer#0f8a7ea5 query_id:uint64 amount:Coins destination:MsgAddress = Body"
SHADOWED = "transfer#0f8a7ea5 mc_seqno:uint64 tx_lt:Coins = Body"
SEVERAL = f"{TRANSFER};\ntransfer#d53276db query_id:uint64 = Body; a#1 = A"
NARROW = "transfer#0f8a7ea5 query_id:uint64 x:^Cell y:^Cell z:^Cell t:^Cell u:^Cell = Body"


pytestmark = pytest.mark.filterwarnings("ignore:bodies with the opcode")


@pytest.fixture(scope="module")
def lake(demo_lake: Path) -> Lake:
    return tonlake.open(demo_lake)


def scan(lake: Lake, table: str, where: Any, **options: Any) -> list[tuple[Any, ...]]:
    return [row for batch in lake.scan(table, where, **options) for row in batch.rows]


def run_scan(lake_dir: Path, *arguments: str, exit_code: int = 0) -> Result:
    return run(lake_dir, "scan", *arguments, exit_code=exit_code)


def run(lake_dir: Path, *arguments: str, exit_code: int = 0) -> Result:
    found = commands.run(*arguments, "--lake", lake_dir)
    assert found.exit_code == exit_code, found.output
    return found


def test_every_layout_gives_what_sql_gives(lake: Lake) -> None:
    names = lake.sql(
        "select decoded_opcode from message_bodies where decoded_opcode is not null"
        " group by all order by count(*) desc, decoded_opcode"
    ).fetchall()
    found = 0
    for (name,) in names[:6]:
        own = name.split(",")[0]
        statement = f"select time, tx_hash, value from {own} order by {ORDER}"
        expected = lake.sql(statement, signature=own).fetchall()
        columns = ["time", "tx_hash", "value"]
        assert scan(lake, own, None, signature=own, columns=columns) == expected
        found += len(expected)
    assert found > 100


@pytest.mark.parametrize("signature", [TRANSFER, SHADOWED, SEVERAL, NARROW])
@pytest.mark.parametrize("table", ["transfer", "transfer_misfits"])
def test_all_columns(lake: Lake, signature: str, table: str) -> None:
    batches = list(lake.scan(table, signature=signature))
    columns = batches[0].rows.columns
    assert "day" not in columns
    height = "message_mc_seqno" if "message_mc_seqno" in columns else "mc_seqno"
    statement = f"select {', '.join(columns)} from {table}"
    expected = lake.sql(statement, signature=signature).fetchall()
    found = [row for batch in batches for row in batch.rows]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    heights = [row[columns.index(height)] for row in found]
    assert heights == sorted(heights)
    if signature == NARROW:
        assert bool(found) == (table == "transfer_misfits")


def test_a_scan_has_few_threads() -> None:
    """A scan has up to twenty tables, and a service dozens of scans."""
    before = len(list(TASKS.iterdir()))
    tables = {f"a{at}{end}": TableScan() for at in range(5) for end in ("", "_misfits")}
    signature = ";".join(f"a{at}#0f8a7ea{at} query_id:uint64 = Body" for at in range(5))
    source = make_source(Scan(tables=tables, signature=signature), LakeSettings())
    assert len(list(TASKS.iterdir())) <= before + 1
    assert source.schema.names == ["mc_seqno", *tables]


def test_bodies_that_do_not_fit_are_counted(lake: Lake, demo_lake: Path) -> None:
    given: dict[str, Any] = {"transfer": {}, "transfer_misfits": {}, "blocks": {}}
    batches = list(lake.scan(given, signature=NARROW))
    count = sum(batch.misfits.get("transfer", 0) for batch in batches)
    assert count == sum(len(batch.table("transfer_misfits")) for batch in batches) > 0
    assert all(batch.misfits.keys() <= {"transfer"} for batch in batches)
    lines = [
        json.loads(line)["@batch"]
        for line in run_scan(demo_lake, "transfer", "--signature", NARROW).stdout.splitlines()
        if "@batch" in line
    ]
    assert sum(line["misfits"]["transfer"] for line in lines) == count
    output = run_scan(demo_lake, "transfer", "--signature", NARROW, "--format", "csv").stderr
    assert f"do not fit it: {count:,} of those that were read" in output
    assert not any(batch.misfits for batch in lake.scan("transfer", signature=TRANSFER))


def test_the_command_takes_several_tables(lake: Lake, demo_lake: Path) -> None:
    opcode = {"opcode": ["0x0f8a7ea5"]}
    given = {
        "messages": {"where": opcode, "columns": ["tx_hash", "trace.trace_id"]},
        "transfer": {"where": {}, "columns": ["amount"]},
    }
    expected = [row for batch in lake.scan(given, signature=TRANSFER) for row in batch.rows]
    columns = "messages.tx_hash,messages.trace.trace_id,transfer.amount"
    options = ["--where", "messages.opcode=0x0f8a7ea5", "--columns", columns, "--format", "arrow"]
    found = run_scan(demo_lake, "messages", "transfer", "--signature", TRANSFER, *options)
    rows = pa.ipc.open_stream(found.stdout_bytes).read_all()
    assert [tuple(row.values()) for row in rows.to_pylist()] == expected
    wrong = run_scan(demo_lake, "messages", "blocks", "--columns", "value", exit_code=2)
    assert "value: with several tables, use TABLE.COLUMN" in wrong.stderr


def test_a_layout_may_be_called_as_scans_call_what_they_read(lake: Lake) -> None:
    columns = ["tx_hash", "amount"]
    for name in ("messages_read", "A", "select"):
        signature = TRANSFER.replace("transfer", name)
        found = scan(lake, name, None, signature=signature, columns=columns)
        assert found == scan(lake, "transfer", None, signature=TRANSFER, columns=columns) != []


def test_filters_by_fields_and_columns(lake: Lake) -> None:
    rows = scan(
        lake, "transfer", None, signature=TRANSFER, columns=["destination", "source", "account"]
    )
    destination, source, account = rows[0][0], rows[-1][1], rows[1][2]
    amount, tx_hash = lake.sql(
        "select amount, tx_hash from transfer", signature=TRANSFER
    ).fetchall()[0]
    for where, condition in (
        ({"destination": destination}, "destination = $destination"),
        ({"destination": destination.lower()}, "destination = $destination"),
        ({"source": source}, "source = $source"),
        ({"account": account}, "account = $account"),
        ({"amount": int(amount), "kind": "int"}, "amount = $amount and kind = 'int'"),
        ({"tx_hash": tx_hash.hex()}, "tx_hash = $tx_hash"),
        ({"bounced": True, "destination": None}, "bounced and destination is null"),
        (
            [{"source": source}, {"destination": destination, "source": rows[0][1]}],
            "(source = $source or (destination = $destination and source = $first))",
        ),
    ):
        values = {
            "destination": destination,
            "source": source,
            "amount": int(amount),
            "tx_hash": tx_hash,
            "account": account,
            "first": rows[0][1],
        }
        named = {name: value for name, value in values.items() if f"${name}" in condition}
        statement = f"select tx_hash, amount from transfer where {condition} order by {ORDER}"
        expected = lake.sql(statement, signature=TRANSFER, **named).fetchall()
        columns = ["tx_hash", "amount"]
        assert scan(lake, "transfer", where, signature=TRANSFER, columns=columns) == expected, where
        assert expected or "bounced" in condition
