"""Draws values from a lake's rows, in the forms in which a client may write them.

The Parquet files are read directly, so that this uses none of the code under test.
"""

from __future__ import annotations

import base64
from binascii import crc_hqx
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import duckdb
import msgspec

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

ROWS = 60
"""Rows of each table that values are taken from."""

LOG, INDEX = "_log", "lookups"
_UNSIGNED = 1 << 64


class Sample(msgspec.Struct, frozen=True):
    """Some rows of each table, and the number of snapshots of the lake."""

    tables: dict[str, list[dict[str, Any]]]
    snapshots: int


def read_sample(lake_dir: Path, seed: int) -> Sample:
    """Return the same rows for the same lake and seed."""
    tables = {}
    with duckdb.connect() as connection:
        for folder in sorted(lake_dir.iterdir()):
            if not next(folder.rglob("*.parquet"), None) or folder.name in {LOG, INDEX}:
                continue
            rows = connection.execute(
                "select * from read_parquet($files, union_by_name=true) as held"
                " order by md5($seed || held::varchar), held limit $rows",
                {"files": f"{folder}/**/*.parquet", "seed": str(seed), "rows": ROWS},
            )
            names = [column[0] for column in rows.description]
            found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
            tables[folder.name] = found
    numbers = [int(path.stem) for path in (lake_dir / LOG).glob("*.json")]
    return Sample(tables, max(numbers, default=0))


class Scene:
    """One random row of each table: the values of one request come from the same rows."""

    def __init__(self, sample: Sample, random: Random) -> None:
        """Draw the rows."""
        self._random = random
        self._rows = {name: random.choice(rows) for name, rows in sample.tables.items() if rows}

    def draw(self, places: tuple[str, ...]) -> str | None:
        """Return a value of one of ``table.column``; None if no row has any of them."""
        pairs = [place.split(".") for place in places]
        found = [
            (self._rows[table], column)
            for table, column in pairs
            if self._rows.get(table, {}).get(column) is not None
        ]
        if not found:
            return None
        row, column = self._random.choice(found)
        return self._write(row, column)

    def _write(self, row: dict[str, Any], column: str) -> str:
        value = row[column]
        if isinstance(value, list):
            value = self._random.choice(value) if value else b""
        workchain = "workchain" if column == "account" else f"{column}_workchain"
        if workchain in row:
            return self._write_account(row[workchain], value)
        if column == "shard":
            return self._random.choice((f"{value % _UNSIGNED:016X}", str(value)))
        if column == "opcode":
            return self._random.choice((f"0x{value % (1 << 32):08x}", str(value)))
        return self._write_bytes(value) if isinstance(value, bytes) else str(value)

    def _write_account(self, workchain: int, account: bytes) -> str:
        form = self._random.choice(("raw", "lower", "bounceable", "other"))
        if form in {"raw", "lower"}:
            text = f"{workchain}:{account.hex()}"
            return text.upper() if form == "raw" else text
        tag = 0x11 if form == "bounceable" else 0x51  # TEP-2
        packed = bytes((tag, workchain % 256)) + account
        return base64.urlsafe_b64encode(packed + crc_hqx(packed, 0).to_bytes(2)).decode()

    def _write_bytes(self, data: bytes) -> str:
        if len(data) != 32:
            return base64.b64encode(data).decode()
        form = self._random.choice((bytes.hex, base64.b64encode, base64.urlsafe_b64encode))
        written = form(data)
        return written if isinstance(written, str) else written.decode()

    def quoted(self, places: tuple[str, ...]) -> str:
        """Return a value for a path."""
        return quote(self.draw(places) or "x", safe=":")
