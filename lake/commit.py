"""A range of masterchain blocks, with all its tables, into the lake: whole or not at all.

1. Data files are written under temporary names, synced, renamed; then their folders are synced.
2. ``_log/<N>.json`` is made exclusively (a hard link to a synced temporary file) and its folder
   is synced. With that link the commit is there; before it, nothing is.
3. What a crash leaves behind is named by no commit, and goes with the sweep (lake.orphan).
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from lake.admission import check_tables
from lake.crash import reach
from lake.disk import (
    LOCK_FILE,
    hold_lock,
    make_folder,
    naming_full_disk,
    sync_folder,
    write_temporary,
)
from lake.errors import CommitConflict, LakeFull, LakeNotFound, RangeOverlap
from lake.log import (
    LOG_FOLDER,
    Commit,
    DataFile,
    LogState,
    Network,
    checkpoint_name,
    encode_entry,
    entry_name,
    join_networks,
    overlaps,
    read_state,
)
from lake.schema import SCHEMA_VERSION, TABLES
from lake.settings import Settings
from lake.writer import encode_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from lake.log import Range

__all__ = ["Commit", "DataFile", "Network", "commit_range"]

_DIGEST_LETTERS = 16
_DEFAULTS = Settings()


def commit_range(
    lake_dir: Path,
    tables: Mapping[str, pa.Table],
    *,
    first_mc_seqno: int,
    last_mc_seqno: int,
    day: str,
    source: Mapping[str, str],
    network: Network | None = None,
    settings: Settings = _DEFAULTS,
) -> Commit:
    """Add all rows of the masterchain blocks ``first_mc_seqno..last_mc_seqno``, both included.

    Tables that are missing count as empty. Rows of mc_seqno 0, a zero state, belong to the
    range that begins at 1. The lake is made if it is not there yet.

    Args:
        lake_dir: Folder of the lake.
        tables: Rows by table name, with the schema's columns, in any order of rows.
        first_mc_seqno: First masterchain block of the range.
        last_mc_seqno: Last one.
        day: UTC day of these masterchain blocks, ``YYYY-MM-DD``.
        source: Fingerprint of where the rows come from.
        network: Network of the rows, where known.
        settings: File options.

    Raises:
        RowsRejected: rows that do not fit the schema or the range.
        RangeOverlap: the lake has some of these blocks already.
        NetworkMismatch: the lake is another network's.
        CommitConflict: a writer that our lock does not reach took the place in the log.
        LakeFull: no room; nothing was committed.
    """
    reach("commit.start")
    mc_range = (first_mc_seqno, last_mc_seqno)
    rows = check_tables(tables, mc_range, day)
    make_folder(lake_dir / LOG_FOLDER)
    with hold_lock(lake_dir / LOCK_FILE):
        state = _state_so_far(lake_dir)
        _check_overlap(state, mc_range)
        join_networks(state.network, network)
        added = _write_files(lake_dir, rows, mc_range, day, settings)
        commit = Commit(
            number=state.number + 1,
            first_mc_seqno=first_mc_seqno,
            last_mc_seqno=last_mc_seqno,
            day=day,
            added=added,
            removed=(),
            schema_version=SCHEMA_VERSION,
            source=dict(source),
            shards=_shard_ranges(rows.get("blocks")),
            zero_state=_has_zero_state(rows),
            network=network,
            previous=state.digest,
        )
        digest = _write_entry(lake_dir, commit)
        if commit.number % settings.checkpoint_commits == 0:
            _write_checkpoint(lake_dir, state.add(commit, digest))
    return commit


def _state_so_far(lake_dir: Path) -> LogState:
    try:
        return read_state(lake_dir)
    except LakeNotFound:
        return LogState()


def _check_overlap(state: LogState, mc_range: Range) -> None:
    for first, last in overlaps(state.ranges, mc_range):
        raise RangeOverlap(
            f"masterchain blocks {mc_range[0]}..{mc_range[1]} cannot be committed: "
            f"the lake has {first}..{last} already"
        )


def _write_files(
    lake_dir: Path, rows: Mapping[str, pa.Table], mc_range: Range, day: str, settings: Settings
) -> tuple[DataFile, ...]:
    """Write a file per table, durably; on any failure none is left."""
    files: list[DataFile] = []
    try:
        for name in sorted(rows):
            data = encode_parquet(rows[name], TABLES[name], settings)
            sha256 = hashlib.sha256(data).hexdigest()
            place = f"{mc_range[0]}-{mc_range[1]}-{sha256[:_DIGEST_LETTERS]}"
            path = f"{name}/day={day}/{place}.parquet"
            files.append(
                DataFile(path, name, rows[name].num_rows, data.size, sha256, SCHEMA_VERSION)
            )
            make_folder((lake_dir / path).parent)
            write_temporary(lake_dir / path, data, "file").replace(lake_dir / path)
            reach("file.renamed")
        reach("commit.files_renamed")
        for folder in sorted({(lake_dir / file.path).parent for file in files}):
            sync_folder(folder)
        reach("commit.folders_synced")
    except (OSError, LakeFull):
        _remove_files(lake_dir, files)
        raise
    return tuple(files)


def _remove_files(lake_dir: Path, files: Iterable[DataFile]) -> None:
    """Remove files of a commit that failed: no live commit has their range, so none names them."""
    for file in files:
        (lake_dir / file.path).unlink(missing_ok=True)


def _shard_ranges(blocks: pa.Table | None) -> dict[str, Range]:
    if blocks is None:
        return {}
    keys = ["workchain", "shard"]
    grouped = blocks.group_by(keys).aggregate([("seqno", "min"), ("seqno", "max")])
    return {
        f"{row['workchain']}:{row['shard'] & (1 << 64) - 1:016x}": (
            row["seqno_min"],
            row["seqno_max"],
        )
        for row in grouped.to_pylist()
    }


def _has_zero_state(rows: Mapping[str, pa.Table]) -> bool:
    return any(0 in table["mc_seqno"].unique().to_pylist() for table in rows.values())


def _write_entry(lake_dir: Path, commit: Commit) -> str:
    """Make the log entry exclusively and durably, and return its digest."""
    data, digest = encode_entry(commit)
    entry = lake_dir / LOG_FOLDER / entry_name(commit.number)
    try:
        _link_entry(write_temporary(entry, data, "log"), entry)
    except (OSError, LakeFull):
        _remove_files(lake_dir, commit.added)
        raise
    reach("log.unlinked")
    sync_folder(entry.parent)
    reach("log.folder_synced")
    return digest


def _link_entry(temporary: Path, entry: Path) -> None:
    try:
        with naming_full_disk(entry):
            os.link(temporary, entry)
        reach("log.linked")
    except FileExistsError as error:
        raise CommitConflict(
            f"another writer made {LOG_FOLDER}/{entry.name} at the same time: run the same "
            "command again, it goes on after that commit"
        ) from error
    finally:
        # The entry is there by now, or never will be: what is left goes with the next sweep.
        with suppress(OSError):
            temporary.unlink()


def _write_checkpoint(lake_dir: Path, state: LogState) -> None:
    data, _ = encode_entry(state)
    final = lake_dir / LOG_FOLDER / checkpoint_name(state.number)
    write_temporary(final, data, "checkpoint").replace(final)
    reach("checkpoint.renamed")
    sync_folder(final.parent)
