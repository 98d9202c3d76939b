"""Decoded bodies of ranges that were committed without them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.derivation import COLUMNS, decode_bodies
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, read_place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.settings import LakeSettings


def rebuild_bodies(
    lake_dir: Path,
    settings: LakeSettings,
    *,
    everything: bool = False,
    on_range: Callable[[int, int], None] = lambda _done, _all: None,
) -> int:
    """Decode the bodies of all ranges that have none decoded, a commit for each; return how many.

    Readers and writers go on meanwhile: the lock is held for the commits alone.

    Args:
        lake_dir: Folder of the lake.
        settings: File options.
        everything: Decode all bodies again.
        on_range: Called after each range with the number of ranges done and of all.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeCorrupt: a file of messages is damaged.
    """
    todo = sorted(_list_todo(read_state(lake_dir), everything=everything))
    for done, place in enumerate(todo, 1):
        commit_derived(lake_dir, settings, partial(_derive, lake_dir, place))
        on_range(done, len(todo))
    return len(todo)


def _list_todo(state: LogState, *, everything: bool) -> dict[Place, DataFile]:
    """Return the files of messages whose bodies are to be decoded, by their places."""
    files: dict[str, dict[Place, DataFile]] = {MESSAGES.name: {}, MESSAGE_BODIES.name: {}}
    for file in state.files:
        if file.table in files:
            files[file.table][read_place(file.path)] = file
    known = {} if everything else files[MESSAGE_BODIES.name]
    return {place: file for place, file in files[MESSAGES.name].items() if place not in known}


def _derive(lake_dir: Path, place: Place, state: LogState) -> Derivation | None:
    """Decode the bodies of a range; one that was merged meanwhile waits for the next run."""
    here = [file for file in state.files if read_place(file.path) == place]
    messages = [file for file in here if file.table == MESSAGES.name]
    if not messages:
        return None
    rows = decode_bodies(read_rows(lake_dir, messages[0], COLUMNS))
    old = frozenset(file.path for file in here if file.table == MESSAGE_BODIES.name)
    return Derivation([NewFile(MESSAGE_BODIES.name, place, rows)], old)
