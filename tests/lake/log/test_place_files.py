"""Files by table are those of the state asked about, also where others were asked about before."""

from __future__ import annotations

import msgspec

from tonlake.lake.log.place import list_files
from tonlake.lake.log.state import DataFile, LogState


def make_file(table: str, number: int) -> DataFile:
    path = f"{table}/day=2024-01-01/{number}-{number}-{number:016x}.parquet"
    return DataFile(path, table, rows=1, bytes=1, sha256="", schema_version=1)


def test_files_come_by_table_in_the_order_of_the_state() -> None:
    files = tuple(make_file(table, number) for number in (2, 1, 3) for table in ("a", "b", "c"))
    state = LogState(files=files)
    assert list_files(state, "c", "a") == [
        make_file(table, number) for table in ("c", "a") for number in (2, 1, 3)
    ]
    assert list_files(state, "d") == []


def test_each_state_has_its_own() -> None:
    states = [LogState(files=(make_file("a", number),)) for number in range(1, 6)]
    for _ in range(2):
        for number, state in enumerate(states, 1):
            assert list_files(state, "a") == [make_file("a", number)]
            more = msgspec.structs.replace(state, files=(*state.files, make_file("a", 9)))
            assert list_files(more, "a") == [make_file("a", number), make_file("a", 9)]


def test_what_is_listed_may_be_changed() -> None:
    state = LogState(files=(make_file("a", 1),))
    list_files(state, "a").clear()
    assert list_files(state, "a") == [make_file("a", 1)]
