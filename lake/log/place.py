"""Paths of data files: ``<table>/day=YYYY-MM-DD/<range>-<digest>.parquet``; ``.arrow`` in a pack.

The range is the masterchain blocks whose rows the file has, such as ``1-500``. ``open`` instead of
a range marks derived rows that are not final yet, of any block; there is one such file per table.
``state-499`` marks rows of the baseline, the full state after block 499: several files per table.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa

from tonlake.lake.log.state import PACK_FOLDER, DataFile, LogState, name_place
from tonlake.lake.schema import SCHEMA_VERSION

_DIGEST_LETTERS = 16
_NAME = r"day=\d{4}-\d\d-\d\d/(?:open|state-[1-9]\d*|[1-9]\d*-[1-9]\d*)"
_PLACE = re.compile(_NAME)
_PATH = re.compile(rf"\w+/{_NAME}-[0-9a-f]+\.(?:parquet|arrow)")
_STATE = "state-"
_DAY_AT, _RANGE_AT = len("day="), len("day=2026-11-23/")


class Place(NamedTuple):
    """The range of masterchain blocks of a commit, both ends included, and its UTC day.

    Open rows have 0 to 0 and the lake's last day; the baseline its one block and the first day.
    """

    first: int
    last: int
    day: str
    is_baseline: bool = False

    @property
    def is_open(self) -> bool:
        """Whether this is the place of rows that are not final."""
        return self.first == 0

    @property
    def name(self) -> str:
        """The part that the paths of all files at this place share."""
        span = "open" if self.is_open else f"{self.first}-{self.last}"
        if self.is_baseline:
            span = f"{_STATE}{self.first}"
        return f"day={self.day}/{span}"


PACKED_ENDING = ".arrow"
"""Ending of the paths of files in packs."""


def path_at(table: str, place: Place, sha256: str, ending: str = ".parquet") -> str:
    """Return the path, relative to the lake, of a table's file with this digest in hex."""
    return f"{table}/{place.name}-{sha256[:_DIGEST_LETTERS]}{ending}"


def pack_path(place: Place, size: int, sha256: str) -> str:
    """Return the path, relative to the lake, of the pack of a commit: with its size and digest."""
    return f"{PACK_FOLDER}/{place.name}-{size}-{sha256}.arrows"


_PACK = re.compile(rf"{PACK_FOLDER}/({_NAME})-([1-9]\d*)-([0-9a-f]{{64}})\.arrows")


def describe_pack(path: str) -> tuple[str, DataFile]:
    """Return the name of a pack's place, and the pack as one file; ValueError: it is no pack."""
    match = _PACK.fullmatch(path)
    if match is None:
        raise ValueError(f"{path!r} is not the path of a pack")
    file = DataFile(path, PACK_FOLDER, 0, int(match[2]), match[3], SCHEMA_VERSION)
    return match[1], file


def list_replaced(state: LogState, removed: Collection[str]) -> set[str]:
    """Return the stored files that no one needs without the ``removed`` paths.

    A pack is one of them when it has no more live files of its own place.
    """
    gone = {path for path in removed if path.endswith(PACKED_ENDING)}
    places = {name_place(path) for path in gone}
    listed = (file for place in places for file in state.by_place.get(place, ()))
    packs = {file.pack for file in listed if file.path in gone}
    own = {describe_pack(pack)[0] for pack in packs}
    near = (file for place in own for file in state.by_place.get(place, ()))
    emptied = packs - {file.pack for file in near if file.path not in gone}
    return {path for path in removed if path not in gone} | emptied


def list_stored(files: Iterable[DataFile]) -> list[DataFile]:
    """Return the files as they are stored: a pack once instead of its parts."""
    stored = {file.stored: file for file in files}
    return [describe_pack(at)[1] if file.pack else file for at, file in stored.items()]


class NewFile(NamedTuple):
    """Rows that will become one file of a table."""

    table: str
    place: Place
    rows: pa.Table


class Derivation(NamedTuple):
    """The result of deriving rows: files to write, and paths of the files that they replace."""

    files: Iterable[NewFile]
    removed: frozenset[str]


Derive = Callable[["LogState", Mapping[str, pa.Table], Place], Iterable[Derivation]]
"""Derives rows from the lake so far, and from the base rows and the place of a commit: stage by
stage, so that the files of one are written while the next is at work."""


def is_open(path: str) -> bool:
    """Whether a path is that of open rows; faster than ``read_place``."""
    return "/open-" in path


def is_data_path(path: str) -> bool:
    """Whether a path is one that a data file may have."""
    return _PATH.fullmatch(path) is not None


def read_place(path: str) -> Place:
    """Return the place in a data file's path, or raise ValueError."""
    return _read_name(name_place(path))


@lru_cache(maxsize=1 << 12)
def _read_name(name: str) -> Place:
    """Parse the name of a place, which a dozen or more files share."""
    if _PLACE.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not the place of a data file")
    day, span = name[_DAY_AT : _RANGE_AT - 1], name[_RANGE_AT:]
    if span.startswith(_STATE):
        mc_seqno = int(span.removeprefix(_STATE))
        return Place(mc_seqno, mc_seqno, day, is_baseline=True)
    first, _, last = span.partition("-")
    return Place(0, 0, day) if span == "open" else Place(int(first), int(last), day)


def list_places(state: LogState) -> list[Place]:
    """Return the places of all ranges, in order; that of kept rows first (``last_pruned``)."""
    places = map(_read_name, state.by_place)
    return sorted(place for place in places if not (place.is_open or place.is_baseline))


def find_last_parquet(state: LogState) -> int:
    """Return the last masterchain block whose rows, and those of all before, are not in packs."""
    packed = (read_place(file.path) for file in state.files if file.pack)
    fresh = min((place.first for place in packed if not place.is_open), default=None)
    return state.ranges[-1][1] if fresh is None else fresh - 1


def find_newest_day(state: LogState) -> str:
    """Return the latest day of all live files."""
    return max(map(_read_name, state.by_place), key=attrgetter("day")).day


def list_files(state: LogState, *tables: str) -> list[DataFile]:
    """Return the live files of ``tables``: table by table, each in the order of the state."""
    return [file for table in tables for file in state.by_table.get(table, ())]


def list_files_at(state: LogState, place: Place, *tables: str) -> list[DataFile]:
    """Return the live files of ``tables`` at a place."""
    return [file for file in state.by_place.get(place.name, ()) if file.table in tables]


def list_open_files(state: LogState, *tables: str) -> list[DataFile]:
    """Return the live files of ``tables`` whose rows are not final."""
    places = [name for name in state.by_place if name.endswith("/open")]
    return [file for name in places for file in state.by_place[name] if file.table in tables]


def list_baseline_files(state: LogState, *tables: str) -> list[DataFile]:
    """Return the live baseline files of ``tables``: table by table, each in order of its parts."""
    places = [name for name in state.by_place if f"/{_STATE}" in name]
    files = [file for name in places for file in state.by_place[name]]
    return [file for table in tables for file in files if file.table == table]


def list_files_between(state: LogState, first: int, last: int, *tables: str) -> list[DataFile]:
    """Return live files of ``tables`` that may have rows of a range, by place, no open ones."""
    places = [
        place
        for place in map(_read_name, state.by_place)
        if place.first <= last and first <= place.last and not place.is_open
    ]
    return [file for place in sorted(places) for file in list_files_at(state, place, *tables)]
