"""Writes a small lake of contracts row by row: the state of each at a given block."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonlake.lake.commit.commit import commit_range
from tonlake.lake.log.state import NetworkId
from tonlake.lake.schema import TABLES, Column

MASTER_SHARD = -(2**63)
DAY = "2025-01-01"
GLOBAL_ID = -239

_EMPTY: dict[str, Any] = {
    "bool": False,
    "text": "",
    "bytes": b"",
    "hash": bytes(32),
    "json": "{}",
    "hashes": [],
    "ints": [],
    "texts": [],
}
"""What a column holds that may not be NULL and is not given; 0 for the other types."""


def make_id(name: str) -> bytes:
    """Return the account id, or hash, that a name has in all scenes."""
    return hashlib.sha256(name.encode()).digest()


def make_raw(name: str) -> str:
    """Return the raw address of a name in workchain 0."""
    return f"0:{make_id(name).hex().upper()}"


class Scene:
    """Rows of one commit, whose masterchain blocks have no gap."""

    def __init__(self, last_mc_seqno: int, first_mc_seqno: int = 1) -> None:
        """Begin with the headers of the masterchain blocks, and a zero state before the first."""
        self.first_mc_seqno, self.last_mc_seqno = first_mc_seqno, last_mc_seqno
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        for mc_seqno in range(first_mc_seqno, last_mc_seqno + 1):
            self.put(
                "blocks",
                workchain=-1,
                shard=MASTER_SHARD,
                seqno=mc_seqno,
                mc_seqno=mc_seqno,
                gen_utime=1000 + mc_seqno,
                start_lt=mc_seqno * 100,
                end_lt=mc_seqno * 100 + 99,
            )
        if first_mc_seqno == 1:
            self.put("account_states", account="zero state", mc_seqno=0, account_status="active")

    def put(self, table: str, **values: Any) -> None:
        """Add a row; a name in place of an account or hash stands for its id."""
        row = dict(values)
        columns = {column.name: column for column in TABLES[table].columns}
        for name, value in values.items():
            if columns[name].type != "hash" or not isinstance(value, str):
                continue
            row[name] = make_id(value)
            place = "workchain" if name == "account" else f"{name}_workchain"
            if place in columns:
                row.setdefault(place, 0)
        self.rows[table].append({name: _fill(columns[name], row) for name in columns})

    def put_state(self, table: str, account: str, mc_seqno: int, **values: Any) -> None:
        """Add the row of a contract at a block, and the state it was read from."""
        lt = mc_seqno * 100 + 1
        code = values.pop("code", f"code of {table}")
        self.put(table, account=account, mc_seqno=mc_seqno, lt=lt, code_hash=code, **values)
        self.put(
            "account_states",
            account=account,
            mc_seqno=mc_seqno,
            account_status="active",
            code_hash=code,
            last_trans_lt=lt,
            hash=f"{account} {mc_seqno}",
        )

    def commit(self, lake_dir: Path) -> Path:
        """Write the lake, and return its folder."""
        commit_range(
            lake_dir,
            {
                name: pa.Table.from_pylist(rows, schema=TABLES[name].arrow)
                for name, rows in self.rows.items()
            },
            first_mc_seqno=self.first_mc_seqno,
            last_mc_seqno=self.last_mc_seqno,
            day=DAY,
            source={"kind": "scene"},
            network=NetworkId(GLOBAL_ID, bytes(32).hex(), bytes(32).hex()),
        )
        return lake_dir


def _fill(column: Column, row: dict[str, Any]) -> Any:
    if column.name in row or column.nullable:
        return row.get(column.name)
    return _EMPTY.get(column.type, 0)
