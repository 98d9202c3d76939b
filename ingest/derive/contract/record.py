"""Findings to rows: the tables of contracts of one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.ingest.derive.contract.interface import name_interfaces, read_method_ids
from tonlake.lake.schema.contract import HISTORY_TABLES, INTERFACES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.ingest.derive.contract.detection import Finding
    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.derive.contract.world import World
    from tonlake.lake.schema import Table

Row = dict[str, Any]


def make_history(findings: Iterable[tuple[AccountState, Finding]]) -> dict[str, pa.Table]:
    """Return the rows of the tables that have one for every state of a contract."""
    rows: dict[str, list[Row]] = {table.name: [] for table in HISTORY_TABLES}
    for state, finding in findings:
        rows[finding.table].append({**_describe(state), **finding.fields})
    return {table.name: make_table(table, rows[table.name]) for table in HISTORY_TABLES}


def make_interfaces(states: Iterable[AccountState], world: World) -> pa.Table:
    """Return a row for every code of the commit: its methods, and the names that these give it."""
    first: dict[bytes, int] = {}
    for state in states:
        if state.code_hash is not None:
            at = first.setdefault(state.code_hash, state.mc_seqno)
            first[state.code_hash] = min(at, state.mc_seqno)
    rows = []
    for code_hash, mc_seqno in first.items():
        cell = world.find_cell(code_hash)
        methods = None if cell is None else read_method_ids(cell.tree, cell.root)
        rows.append(
            {
                "code_hash": code_hash,
                "mc_seqno": mc_seqno,
                "methods": methods,
                "names": name_interfaces(code_hash, methods),
            }
        )
    return make_table(INTERFACES, rows)


def make_table(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Return rows as Arrow; dicts of JSON columns become text, in the order of their keys."""
    names = [column.name for column in table.columns if column.type == "json"]
    written = [{**row, **{name: _write_json(row[name]) for name in names}} for row in rows]
    if not written:
        return table.empty
    return pa.Table.from_pylist(written, schema=table.arrow)


def _write_json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _describe(state: AccountState) -> Row:
    return {
        "workchain": state.workchain,
        "account": state.account,
        "mc_seqno": state.mc_seqno,
        "lt": state.lt,
        "utime": state.utime,
        "code_hash": state.code_hash,
        "data_hash": state.data_hash,
    }
