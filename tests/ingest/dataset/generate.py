"""Writes a lake in the form of the public data set: its names, types and texts."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.ingest.whole import read_table
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.errors import MissingCell

Row = dict[str, Any]

_DAY_S = 86_400
_RENAMED = {
    "shard": "block_shard",
    "compute_skip_reason": "skipped_reason",
    "action_list_hash": "action_action_list_hash",
}
_SAME = (
    *("direction", "value", "fwd_fee", "ihr_fee", "created_lt", "created_at", "opcode", "tx_lt"),
    *("ihr_disabled", "bounce", "bounced", "import_fee"),
)
_HASHES = ("tx_hash", "msg_hash", "body_hash", "init_state_hash")
_PREVIOUS = ("shard", "seqno", "root_hash", "file_hash")
_LEFT_OUT = {"boc", "workchain", "mc_seqno", "time", "outmsg_cnt", "in_msg_hash"}


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _account(workchain: int | None, account: bytes | None) -> str | None:
    return None if account is None else f"{workchain}:{account.hex().upper()}"


def list_blocks(lake: Path) -> list[Row]:
    lost = {"gen_software_version", "gen_software_capabilities", "state_root_hash", "boc_bytes"}
    lost |= {"mc_seqno", "time"}
    lost |= {f"prev{two}_{name}" for two in ("", "2") for name in _PREVIOUS}
    place = {"mc_block_workchain": -1, "mc_block_shard": -(1 << 63)}
    return [
        {name: _text(value) for name, value in row.items() if name not in lost}
        | place
        | {"mc_block_seqno": row["mc_seqno"]}
        for row in read_table(lake, "blocks")
    ]


def list_transactions(lake: Path) -> list[Row]:
    return [
        {
            _RENAMED.get(name, name): _text(value)
            for name, value in row.items()
            if name not in _LEFT_OUT and not name.endswith("extra_currencies")
        }
        | {
            "account": _account(row["workchain"], row["account"]),
            "block_workchain": row["workchain"],
            "mc_block_seqno": row["mc_seqno"],
        }
        for row in read_table(lake, "transactions")
    ]


def list_messages(lake: Path) -> list[Row]:
    return [
        {name: row[name] for name in _SAME}
        | {name: _text(row[name]) for name in _HASHES}
        | {
            "tx_now": row["now"],
            "source": _account(row["source_workchain"], row["source"]),
            "destination": _account(row["destination_workchain"], row["destination"]),
            "body_boc": row["body"],
            "init_state_boc": row["init_state"],
        }
        for row in read_table(lake, "messages")
    ]


def list_states(lake: Path) -> list[Row]:
    """Return the rows of ``account_states``: those of accounts that exist."""
    cells = {row["hash"]: (row["cell"], row["refs"]) for row in read_table(lake, "state_cells")}
    bags: dict[bytes, bytes | None] = {}

    def find(root: bytes | None) -> bytes | None:
        if root is not None and root not in bags:
            try:
                bags[root] = assemble_boc(root, cells)
            except MissingCell:
                bags[root] = None
        return None if root is None else bags[root]

    return [
        {
            "account": _account(row["workchain"], row["account"]),
            "timestamp": row["utime"],
            **{name: row[name] for name in ("balance", "account_status", "last_trans_lt")},
            **{
                name: _text(row[name])
                for name in ("hash", "last_trans_hash", "frozen_hash", "data_hash", "code_hash")
            },
            "data_boc": find(row["data_hash"]),
            "code_boc": find(row["code_hash"]),
        }
        for row in read_table(lake, "account_states")
        if row["account_status"] != "nonexist"
    ]


TABLES = {
    "blocks": (list_blocks, "gen_utime"),
    "transactions": (list_transactions, "now"),
    "messages": (list_messages, "tx_now"),
    "account_states": (list_states, "timestamp"),
}


def write_rows(folder: Path, table: str, rows: Iterable[Row]) -> None:
    """Write rows of a table, a file for each UTC day."""
    column = TABLES[table][1]
    by_day: dict[int, list[Row]] = {}
    for row in rows:
        by_day.setdefault(row[column] // _DAY_S, []).append(row)
    for day, members in by_day.items():
        text = str(pa.scalar(day, pa.date32()).as_py())
        place = folder / table / f"date={text}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(members), place / "data_0.parquet", row_group_size=500)


def write_dataset(lake: Path, folder: Path) -> Path:
    for table, (list_rows, _column) in TABLES.items():
        write_rows(folder, table, list_rows(lake))
    return folder
