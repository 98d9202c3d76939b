"""Looks up accounts in the lake that a trace only refers to, or that no longer exist after it.

Rules ask for the interfaces of any account. Those of accounts that are active after the trace are
in the rows of its own blocks; for others the newest row before the end of the trace is used,
however old. Few traces need any, so the lake is opened only for those.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.account.facts import READERS, show_address
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import iter_dicts
from tonlake.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tonlake.ingest.derive.action.interface import Facts
    from tonlake.lake.account import AccountId
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings

    Asked = tuple[str, int]
    FindKnown = Callable[[set[Asked]], Mapping[Asked, Facts]]

Row = dict[str, Any]

_RAW = re.compile(r"(-?\d{1,9}):([0-9A-F]{64})")
_QUERIES = {
    "jetton_wallets": "from newest_until('jetton_wallets', $workchains, $accounts, $mc_seqnos)",
    "nft_items": "from newest_until('nft_items', $workchains, $accounts, $mc_seqnos)",
    "nft_sales": "from newest_until('nft_sales', $workchains, $accounts, $mc_seqnos)",
    "dex_pools": "from newest_until('dex_pools', $workchains, $accounts, $mc_seqnos)",
    "multisig_orders": "from newest_until('multisig_orders', $workchains, $accounts, $mc_seqnos)",
}
"""Queries for the newest row of each account up to the block of the lookup."""


def find_nothing(_asked: set[Asked]) -> Mapping[Asked, Facts]:
    """Return no facts: only those of the trace itself are used."""
    return {}


class KnownContracts:
    """A lake, and the rows of a range that is about to be committed to it."""

    def __init__(
        self,
        lake_dir: Path,
        settings: LakeSettings,
        state: LogState,
        fresh: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Combine the lake in a state with the rows that are not in it yet, by table."""
        self._lake_dir, self._settings, self._state = lake_dir, settings, state
        self._fresh = fresh or {}

    def find(self, asked: set[Asked]) -> dict[Asked, Facts]:
        """Return the last facts of accounts, each as of a masterchain block; omit unknown accounts.

        Args:
            asked: Raw addresses, each with the block as of which facts are looked up.
        """
        newest: dict[Asked, dict[str, Row]] = {}
        known = {key: parsed for key in asked if (parsed := _parse(key[0])) is not None}
        for key, name, row in (*self._read_lake(known), *self._read_fresh(known)):
            rows = newest.setdefault(key, {})
            if name not in rows or rows[name]["mc_seqno"] < row["mc_seqno"]:
                rows[name] = row
        return {key: _read_facts(key[0], rows) for key, rows in newest.items()}

    def _read_lake(self, asked: Mapping[Asked, AccountId]) -> Iterator[tuple[Asked, str, Row]]:
        """Yield the newest row of each account in each table."""
        if not self._state.number or not asked:
            return
        parameters = {
            "workchains": [workchain for workchain, _ in asked.values()],
            "accounts": [account for _, account in asked.values()],
            "mc_seqnos": [mc_seqno for _, mc_seqno in asked],
        }
        snapshot = Snapshot(self._lake_dir, self._state)
        with connect(snapshot, self._settings, tables=tuple(_QUERIES)) as connection:
            for name, statement in _QUERIES.items():
                cursor = connection.execute(statement, parameters)
                columns = [column[0] for column in cursor.description or ()]
                for values in cursor.fetchall():
                    row = dict(zip(columns, values, strict=True))
                    yield (_show(row), row["asked_at"]), name, row

    def _read_fresh(self, asked: Mapping[Asked, AccountId]) -> Iterator[tuple[Asked, str, Row]]:
        """Yield the rows of each account in the new range, up to the block of the lookup."""
        ends: dict[str, list[int]] = {}
        for address, mc_seqno in asked:
            ends.setdefault(address, []).append(mc_seqno)
        accounts = sorted({account for _, account in asked.values()})
        for name in _QUERIES:
            rows = self._fresh.get(name)
            if rows is None or not rows.num_rows:
                continue
            ids = pa.array(accounts, rows["account"].type)
            for row in iter_dicts(rows.filter(pc.is_in(rows["account"], value_set=ids))):
                for mc_seqno in ends.get(_show(row), ()):
                    if row["mc_seqno"] <= mc_seqno:
                        yield (_show(row), mc_seqno), name, row


def _show(row: Row) -> str:
    return show_address(row["workchain"], row["account"]) or ""


def _parse(address: str) -> AccountId | None:
    """Return the account of a raw address; None for any other text."""
    match = _RAW.fullmatch(address)
    return None if match is None else (int(match[1]), bytes.fromhex(match[2]))


def _read_facts(address: str, rows: Mapping[str, Row]) -> Facts:
    return {
        interface: facts
        for name, row in rows.items()
        for interface, facts in READERS[name](row, address)
    }
