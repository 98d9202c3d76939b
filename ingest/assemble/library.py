"""Tracks which accounts publish which public library.

A block shows what it adds to the public libraries, but often not what it removes. The
masterchain keeps that collection consistent with the library dictionaries of its accounts (TL-B:
simple_lib$_ public:Bool root:^Cell), whose states after every block are known: a publisher whose
dictionary no longer contains the library has withdrawn it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.statecell import CellFinder, Cells
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.errors import MissingCell
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.file.rows import iter_tuples, keep_rows
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import LIBRARIES
from tonlake.lake.settings import LakeSettings

_KEY_BITS = 256
_WORKCHAIN = pa.scalar(MASTERCHAIN, pa.int32())

Publishers = dict[bytes, set[bytes]]
"""Accounts that publish a library, by library hash."""


class LibraryRegistry:
    """The publishers of every public library, kept from commit to commit of one run."""

    def __init__(self, lake_dir: Path, settings: LakeSettings, finder: CellFinder) -> None:
        """Start from the rows of ``lake_dir``, which need not exist yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._finder = finder
        self._publishers: Publishers = {}
        self._public: dict[bytes, set[bytes]] = {}
        """Public libraries in the dictionaries of the last commit, by root."""
        self._next: int | None = None

    def complete(self, tables: Mapping[str, pa.Table], first: int, last: int) -> pa.Table:
        """Return ``libraries`` of the masterchain blocks ``first`` to ``last`` with removals.

        Publishers that blocks omit as unchanged are added, too.
        """
        if first != self._next:
            self._publishers = self._read_lake(first)
        self._next = last + 1
        shown = tables["libraries"]
        if not self._publishers and not shown.num_rows:
            return shown
        rows = list(self._follow(shown.to_pylist(), self._list_states(tables, shown)))
        if not rows:
            return shown
        return pa.Table.from_pylist(rows, LIBRARIES.arrow).sort_by(
            [(name, "ascending") for name in LIBRARIES.sort]
        )

    def _read_lake(self, before: int) -> Publishers:
        try:
            snapshot = open_snapshot(self._lake_dir, check_digests=False)
        except LakeNotFound:
            return {}
        with connect(snapshot, self._settings, tables=["libraries"]) as connection:
            rows = connection.execute(
                "select hash, publishers from libraries where mc_seqno < $before "
                "qualify row_number() over (partition by hash order by mc_seqno desc) = 1 "
                "and present",
                {"before": before},
            ).fetchall()
        return {library: set(publishers) for library, publishers in rows}

    def _list_states(
        self, tables: Mapping[str, pa.Table], shown: pa.Table
    ) -> list[tuple[int, bytes, set[bytes] | None]]:
        accounts = {account for held in self._publishers.values() for account in held}
        accounts |= {account for held in shown["publishers"].to_pylist() for account in held}
        states = tables["account_states"].select(("mc_seqno", "account", "library_hash"))
        is_here = pc.equal(tables["account_states"]["workchain"], _WORKCHAIN)
        known = pa.array(sorted(accounts), pa.binary(32))
        is_publisher = pc.and_(is_here, pc.is_in(states["account"], known))
        rows = list(iter_tuples(keep_rows(states, is_publisher), states.column_names))
        roots = {root for *_, root in rows if root is not None}
        public = {root: self._public[root] for root in roots & self._public.keys()}
        new = roots - public.keys()
        cells = self._finder.find_trees(new, tables["state_cells"]) if new else {}
        public |= {root: _read_public(root, cells) for root in new}
        self._public = {root: held for root, held in public.items() if held is not None}
        return [(at, account, public[root] if root else set()) for at, account, root in rows]

    def _follow(
        self, shown: list[dict[str, Any]], states: list[tuple[int, bytes, set[bytes] | None]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the changes of every block: its own, and libraries that its accounts withdrew."""
        shown_at, states_at = defaultdict(list), defaultdict(list)
        for row in shown:
            shown_at[row["mc_seqno"]].append(row)
        for state in states:
            states_at[state[0]].append(state)
        for at in sorted(shown_at.keys() | states_at.keys()):
            changed: set[bytes] = set()
            for row in shown_at[at]:
                held = self._publishers.setdefault(row["hash"], set())
                held |= set(row["publishers"])
                if not row["present"]:
                    held.clear()
                changed.add(row["hash"])
            for _, account, public in states_at[at]:
                changed |= self._withdraw(account, public)
            for library in sorted(changed):
                held = self._publishers[library]
                yield {
                    "mc_seqno": at,
                    "hash": library,
                    "present": bool(held),
                    "publishers": sorted(held),
                }
                if not held:
                    del self._publishers[library]

    def _withdraw(self, account: bytes, public: set[bytes] | None) -> set[bytes]:
        """Remove the account from libraries it no longer publishes; return those libraries."""
        if public is None:
            return set()
        gone = {
            library
            for library, held in self._publishers.items()
            if account in held and library not in public
        }
        for library in gone:
            self._publishers[library].discard(account)
        return gone


def _read_public(root: bytes, cells: Cells) -> set[bytes] | None:
    """Return the public libraries in an account's dictionary; None if cells are missing."""
    try:
        tree = parse_boc(assemble_boc(root, cells))
    except MissingCell:
        return None
    return {
        key.to_bytes(32, "big")
        for key, value in iter_hashmap(tree, tree.roots[0], _KEY_BITS)
        if value.load_bit()
    }
