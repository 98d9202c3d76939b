"""Where a data file stands: ``<table>/day=YYYY-MM-DD/<range>-<digest>.parquet``.

The range is that of the masterchain blocks whose rows the file has, such as ``1-500``, or it is
``open``: derived rows of any block that are not final, one file a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from tonlake.lake.log.state import DataFile, LogState

_DIGEST_LETTERS = 16
_PATH = re.compile(
    r"\w+/day=(?P<day>\d{4}-\d\d-\d\d)/"
    r"(?:open|(?P<first>[1-9]\d*)-(?P<last>[1-9]\d*))-[0-9a-f]+\.parquet"
)


class Place(NamedTuple):
    """A commit's range of masterchain blocks, both ends included, and its UTC day.

    The place of open rows has the range 0 to 0, and the day of the lake's last block.
    """

    first: int
    last: int
    day: str

    @property
    def is_open(self) -> bool:
        """Whether rows that are not final stand here."""
        return self.first == 0


def path_at(table: str, place: Place, sha256: str) -> str:
    """Return the path in the lake of a table's file at a place, by its digest in hex."""
    stem = "open" if place.is_open else f"{place.first}-{place.last}"
    return f"{table}/day={place.day}/{stem}-{sha256[:_DIGEST_LETTERS]}.parquet"


class NewFile(NamedTuple):
    """Rows that are to become one file of a table."""

    table: str
    place: Place
    rows: pa.Table

    def path(self, sha256: str) -> str:
        """Return the file's path in the lake, by the digest of its bytes in hex."""
        return path_at(self.table, self.place, sha256)


class Derivation(NamedTuple):
    """What follows from base rows: files to write, and paths of the files they replace."""

    files: Iterable[NewFile]
    removed: frozenset[str]


Derive = Callable[["LogState", Mapping[str, pa.Table], Place], Derivation]
"""Makes derived rows from the lake so far, and from the base rows and the place of a commit."""


def derive_nothing(_state: LogState, _rows: Mapping[str, pa.Table], _place: Place) -> Derivation:
    """Return no derived files."""
    return Derivation((), frozenset())


def is_open(path: str) -> bool:
    """Whether a data file's path is that of open rows; faster than to read the place."""
    return "/open-" in path


@lru_cache(maxsize=1 << 13)
def read_place(path: str) -> Place:
    """Return the place that a data file's path names.

    A lake that follows a node has thousands of files, and each commit asks about all.

    Raises:
        ValueError: it is no path of a data file.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise ValueError(f"{path!r} is no path of a data file")
    return Place(int(match["first"] or 0), int(match["last"] or 0), match["day"])


def list_places(state: LogState) -> list[Place]:
    """Return the places of the commits that brought the lake's ranges, in order."""
    places = {read_place(file.path) for file in state.files}
    return sorted(place for place in places if not place.is_open)


def list_files(state: LogState, *tables: str) -> list[DataFile]:
    """Return the live files of some tables: table by table, each in the order of the state."""
    return [file for table in tables for file in state.by_table.get(table, ())]
