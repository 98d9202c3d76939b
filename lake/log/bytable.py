"""The live files of a lake by table, told apart once for all who ask about one state of it.

A lake that follows a node has thousands of small files, and each commit asks about a dozen tables.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.log.state import DataFile, LogState

_STATES_KEPT = 2


class _Files:
    """The files of a state, which are those of another only if they are the same object."""

    __slots__ = ("files",)

    def __init__(self, files: tuple[DataFile, ...]) -> None:
        self.files = files

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and self.files is other.files

    def __hash__(self) -> int:
        return id(self.files)


def list_files(state: LogState, *tables: str) -> list[DataFile]:
    """Return the live files of some tables: table by table, each in the order of the state."""
    by_table = _group(_Files(state.files))
    return [file for table in tables for file in by_table.get(table, ())]


@lru_cache(_STATES_KEPT)
def _group(files: _Files) -> Mapping[str, list[DataFile]]:
    by_table: dict[str, list[DataFile]] = {}
    for file in files.files:
        by_table.setdefault(file.table, []).append(file)
    return by_table
