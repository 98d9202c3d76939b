"""What the lake knows of accounts that a trace only names, or that are gone after it.

Rules ask for the interfaces of any account. Those of accounts that are active after the trace stand
in the rows of its own blocks; for others the newest row before the end of the trace counts, however
old it is. Few traces need any, so the lake is opened for those alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.account.facts import READERS, show_address
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.values import iter_dicts
from tonlake.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tonlake.ingest.derive.action.interface import Facts
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings

    Asked = tuple[str, int]
    FindKnown = Callable[[set[Asked]], Mapping[Asked, Facts]]

Row = dict[str, Any]

_RAW = re.compile(r"-?\d+:([0-9A-Fa-f]{64})")
_QUERIES = {
    "jetton_wallets": """
with picked as (from jetton_wallets where account in (select unnest($accounts)))
from as_of('picked', $mc_seqno)
""",
    "nft_items": """
with picked as (from nft_items where account in (select unnest($accounts)))
from as_of('picked', $mc_seqno)
""",
    "nft_sales": """
with picked as (from nft_sales where account in (select unnest($accounts)))
from as_of('picked', $mc_seqno)
""",
    "dex_pools": """
with picked as (from dex_pools where account in (select unnest($accounts)))
from as_of('picked', $mc_seqno)
""",
    "multisig_orders": """
with picked as (from multisig_orders where account in (select unnest($accounts)))
from as_of('picked', $mc_seqno)
""",
}
"""The newest rows of accounts up to a masterchain block, and of others of the same account id."""


def find_nothing(_asked: set[Asked]) -> Mapping[Asked, Facts]:
    """Know no account beside those of a trace."""
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
        """Take the lake, its state, and the rows that are not in it yet, by table."""
        self._lake_dir, self._settings, self._state = lake_dir, settings, state
        self._fresh = fresh or {}

    def find(self, asked: set[Asked]) -> dict[Asked, Facts]:
        """Return what accounts were last, each at a masterchain block; unknown ones are left out.

        Args:
            asked: Raw addresses, each with the block at which it is asked for.
        """
        newest: dict[Asked, dict[str, Row]] = {}
        for mc_seqno in sorted({mc_seqno for _, mc_seqno in asked}):
            addresses = {address for address, at in asked if at == mc_seqno}
            for name, row in (*self._read_lake(addresses, mc_seqno), *self._read_fresh(addresses)):
                address = _show(row)
                if address not in addresses or row["mc_seqno"] > mc_seqno:
                    continue
                rows = newest.setdefault((address, mc_seqno), {})
                if name not in rows or rows[name]["mc_seqno"] < row["mc_seqno"]:
                    rows[name] = row
        return {key: _read_facts(key[0], rows) for key, rows in newest.items()}

    def _read_lake(self, addresses: set[str], mc_seqno: int) -> Iterator[tuple[str, Row]]:
        """Yield the newest row of each account up to a block, and those of equal account ids."""
        if not self._state.number:
            return
        snapshot = Snapshot(self._lake_dir, self._state)
        with connect(snapshot, self._settings, tables=tuple(_QUERIES)) as connection:
            parameters = {"accounts": _list_ids(addresses), "mc_seqno": mc_seqno}
            for name, statement in _QUERIES.items():
                cursor = connection.execute(statement, parameters)
                columns = [column[0] for column in cursor.description or ()]
                for row in cursor.fetchall():
                    yield name, dict(zip(columns, row, strict=True))

    def _read_fresh(self, addresses: set[str]) -> Iterator[tuple[str, Row]]:
        for name in _QUERIES:
            rows = self._fresh.get(name)
            if rows is not None and rows.num_rows:
                ids = pa.array(_list_ids(addresses), rows["account"].type)
                for row in iter_dicts(rows.filter(pc.is_in(rows["account"], value_set=ids))):
                    yield name, row


def _show(row: Row) -> str:
    return show_address(row["workchain"], row["account"]) or ""


def _list_ids(addresses: set[str]) -> list[bytes]:
    """Return the account ids of raw addresses; other texts name no account."""
    found = map(_RAW.fullmatch, addresses)
    return sorted({bytes.fromhex(match[1]) for match in found if match})


def _read_facts(address: str, rows: Mapping[str, Row]) -> Facts:
    return {
        interface: facts
        for name, row in rows.items()
        for interface, facts in READERS[name](row, address)
    }
