"""Counts the account states whose get-methods no engine could run, by table of contracts."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place, read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import UNANSWERED_METHODS

_COLUMNS = ("contract_table", "method", "reason")
_FILES_KEPT = 10_000


class Unanswered(msgspec.Struct, frozen=True, order=True):
    """A get-method of a table of contracts that could not be run on some ``states``, and why."""

    contract_table: str
    method: str
    reason: str
    states: int


_counted: WeakKeyDictionary[Snapshot, list[Unanswered]] = WeakKeyDictionary()
"""All counts by snapshot, while the snapshot is in use."""


def count_unanswered(snapshot: Snapshot, tables: Collection[str] = ()) -> list[Unanswered]:
    """Return the counts for some tables of contracts (empty: all), sorted."""
    if snapshot not in _counted:
        total: Counter[tuple[str, str, str]] = Counter()
        for file in snapshot.files[UNANSWERED_METHODS.name]:
            total.update(_count_rows(snapshot.lake_dir, file))
        _counted[snapshot] = sorted(Unanswered(*key, states) for key, states in total.items())
    found = _counted[snapshot]
    return [one for one in found if not tables or one.contract_table in tables]


def list_reasons(snapshot: Snapshot) -> Iterator[tuple[Place, set[str]]]:
    """Yield the ranges that have such states, with the reasons."""
    for file in snapshot.files[UNANSWERED_METHODS.name]:
        counts = _count_rows(snapshot.lake_dir, file)
        yield read_place(file.path), {reason for _table, _method, reason in counts}


@lru_cache(_FILES_KEPT)
def _count_rows(lake_dir: Path, file: DataFile) -> Mapping[tuple[str, str, str], int]:
    rows = read_rows(lake_dir, file, _COLUMNS)
    return Counter(zip(*(rows[name].to_pylist() for name in _COLUMNS), strict=True))
