"""User-defined tables of a lake in object storage, as of the time it was copied there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.duck.own import render_own_views
from tonlake.lake.duck.statement import join_scripts, quote_name
from tonlake.lake.log.envelope import parse_body
from tonlake.lake.log.own import (
    DEFINITIONS_FILE,
    OWN_FOLDER,
    OwnState,
    OwnTable,
    OwnTables,
    name_state,
)

if TYPE_CHECKING:
    from pyarrow.dataset import FileSystemDataset

    from tonlake.lake.storage.storage import Storage

_FILES_OF = "files of "


def list_remote_tables(storage: Storage) -> list[tuple[OwnTable, OwnState]]:
    """Return the user-defined tables that have rows; none for an export, which has no rows.

    Raises:
        LakeCorrupt: a definition or a state is damaged.
        StorageError: object storage does not answer.
    """
    listed = storage.list_files([OWN_FOLDER])
    if DEFINITIONS_FILE not in listed:
        return []
    data = storage.read(DEFINITIONS_FILE)
    tables = parse_body(DEFINITIONS_FILE, data, OwnTables)[0].tables
    named = [(table, name_state(table.name)) for table in tables]
    found = [
        (table, parse_body(file, storage.read(file), OwnState)[0])
        for table, file in named
        if file in listed
    ]
    return [(table, state) for table, state in found if state.parts]


def describe_own_files(
    storage: Storage, tables: list[tuple[OwnTable, OwnState]]
) -> dict[str, FileSystemDataset]:
    """Return the files of each table as a dataset, by the name under which its view reads them."""
    # Importing it with the module would slow the start of every command by half a second.
    import pyarrow.dataset as ds  # noqa: PLC0415

    return {
        f"{_FILES_OF}{table.name}": ds.dataset(
            [f"{storage.root}/{part.path}" for part in state.parts.values()],
            filesystem=storage.filesystem,
            format="parquet",
        )
        for table, state in tables
    }


def render_remote_views(tables: list[tuple[OwnTable, OwnState]]) -> str:
    """Return the SQL of the views over these files."""

    def read_files(name: str, _paths: list[str]) -> str:
        return quote_name(f"{_FILES_OF}{name}")

    return join_scripts(render_own_views(tables, read_files))
