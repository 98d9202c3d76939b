"""Delta Lake logs beside the tables, for engines that open a table by its folder.

``<table>/_delta_log/<version>.json`` lists the Parquet files that a version adds and removes, as
described in the Delta Transaction Log Protocol (github.com/delta-io/delta, PROTOCOL.md). Each
version is one snapshot of the lake; its commit info has the number of the commit and the last
masterchain block. The logs are derived: ``_log`` stays the truth, and the same lake published in
the same steps has the same bytes here. A version follows when a table's files changed by the time
of a publication; ``POSITION_FILE`` has what was published last.
"""

import json
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import PARTITION
from tonlake.lake.file.writer import list_bounded
from tonlake.lake.log.disk import (
    NewFiles,
    begin_grace,
    hold_lock,
    make_folder,
    sync_folders,
    write_file,
)
from tonlake.lake.log.envelope import encode_entry, read_body
from tonlake.lake.log.place import PACKED_ENDING, find_last_parquet, find_newest_day, read_place
from tonlake.lake.log.state import (
    LOG_FOLDER,
    VIEWED_FILE,
    Commit,
    DataFile,
    LogReader,
    LogState,
    name_table,
    read_commit,
    read_first,
    read_state,
    sum_changes,
)
from tonlake.lake.schema import SCHEMA_VERSION, TABLES, Column, Table
from tonlake.lake.settings import LakeSettings

POSITION_FILE = f"{LOG_FOLDER}/delta.json"
LOCK_FILE = f"{LOG_FOLDER}/delta"
FOLDER = "_delta_log"
DAY = Column(PARTITION, "date", "UTC day of the masterchain block", nullable=True)

CHECKPOINT_VERSIONS = 32
"""A checkpoint is written after this many versions of a table."""

KEPT_VERSIONS = 2 * CHECKPOINT_VERSIONS
"""Versions before this many, counted from the last checkpoint, are removed: an hour of them, where
a follower publishes each minute. More would be most of the files of such a lake."""

MEASURED_FILES = 1_000
"""A publication of more files reads no statistics from them: that takes 0.2 ms for each."""

_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.binary(32): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
}

_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    # No other writer knows "tonlake", so none may write here, optimize or vacuum.
    "writerFeatures": ["timestampNtz", "tonlake"],
}
_PROPERTIES = {
    # A writer that ignores the protocol still finds nothing old enough to vacuum.
    "delta.deletedFileRetentionDuration": "interval 5200 weeks",
    "delta.logRetentionDuration": "interval 5200 weeks",
    "delta.enableExpiredLogCleanup": "false",
}

_INT, _LONG, _TEXT, _BOOL = pa.int32(), pa.int64(), pa.string(), pa.bool_()
_TEXTS, _PAIRS = pa.list_(_TEXT), pa.map_(_TEXT, _TEXT)


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(fields)


_CHECKPOINT = {
    "protocol": _struct(
        minReaderVersion=_INT, minWriterVersion=_INT, readerFeatures=_TEXTS, writerFeatures=_TEXTS
    ),
    "metaData": _struct(
        id=_TEXT,
        name=_TEXT,
        description=_TEXT,
        format=_struct(provider=_TEXT, options=_PAIRS),
        schemaString=_TEXT,
        partitionColumns=_TEXTS,
        configuration=_PAIRS,
        createdTime=_LONG,
    ),
    "add": _struct(
        path=_TEXT,
        partitionValues=_PAIRS,
        size=_LONG,
        modificationTime=_LONG,
        dataChange=_BOOL,
        stats=_TEXT,
    ),
    "remove": _struct(path=_TEXT, deletionTimestamp=_LONG, dataChange=_BOOL),
}
"""The columns of a checkpoint."""

Action = dict[str, Any]


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is published: a commit and its digest, and the newest version of each table."""

    commit: int
    digest: str
    schema_version: int
    lake: str
    versions: dict[str, int]


class _Version(NamedTuple):
    """One version of a table, and its changes; ``schema`` is whether it states the columns."""

    table: str
    number: int
    schema: bool = False
    added: tuple[DataFile, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether it is yet to be written."""
        return self.schema or bool(self.added or self.removed)


def publish(log: LogReader, settings: LakeSettings) -> None:
    """Bring the Delta logs, and views once written, up to the newest commit, or remove the logs.

    A table whose log is damaged, or of another history of the lake, starts again at version 0.
    Before the first commit there is nothing to publish.
    """
    lake_dir = log.lake_dir
    if (lake_dir / VIEWED_FILE).exists():
        from tonlake.lake.duck.views import follow_views  # noqa: PLC0415 - imports DuckDB

        follow_views(lake_dir, settings)
    if not settings.delta:
        remove_logs(lake_dir)
        return
    if not log.read().number:  # nothing to publish, and no lock to hold
        return
    with hold_lock(lake_dir / LOCK_FILE):
        state = log.find()
        known = _find_position(lake_dir, state)
        if known.commit == state.number and known.schema_version == SCHEMA_VERSION:
            return
        versions = _plan(lake_dir, known, state)
        due = [version for version in versions if version.is_new]
        _write_versions(lake_dir, state, known.lake, due)
        numbers = {version.table: version.number for version in versions}
        position = Position(state.number, state.digest, SCHEMA_VERSION, known.lake, numbers)
        write_file(lake_dir / POSITION_FILE, encode_entry(position)[0], "delta")
    begin_grace(lake_dir, (path for version in due for path in version.removed))
    for version in due:
        if version.number and version.number % CHECKPOINT_VERSIONS == 0:
            _write_checkpoint(lake_dir, version, known.lake)


def remove_logs(lake_dir: Path) -> None:
    """Remove every Delta log, and what is known of them."""
    (lake_dir / POSITION_FILE).unlink(missing_ok=True)
    for name in TABLES:
        shutil.rmtree(lake_dir / name / FOLDER, ignore_errors=True)


def list_published(lake_dir: Path, state: LogState) -> set[str]:
    """Return the paths that published versions or the views list although ``state`` does not."""
    viewed: set[str] = set()
    if (lake_dir / VIEWED_FILE).exists():
        try:
            viewed.update(pq.read_table((lake_dir / VIEWED_FILE).absolute())["path"].to_pylist())
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise LakeCorrupt(VIEWED_FILE, f"it cannot be read ({error})") from error
    if not (lake_dir / POSITION_FILE).exists():
        return viewed
    after = max(_find_position(lake_dir, state).commit, read_first(lake_dir) - 1)
    return viewed | sum_changes(_read_commits(lake_dir, after, state.number))[0]


def find_published(lake_dir: Path, state: LogState) -> int:
    """Return the number of the published commit; that of ``state`` if there are no Delta logs."""
    return _find_position(lake_dir, state).commit or state.number


def find_differences(lake_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield each Delta log that differs from the lake's own log, and how."""
    advice = "tonlake rebuild delta writes it again"
    if not (lake_dir / POSITION_FILE).exists():
        for name in TABLES:  # with first versions alone, the first publication was interrupted
            if (lake_dir / name / FOLDER / f"{1:020}.json").exists():
                yield f"{name}/{FOLDER}", f"{POSITION_FILE} is missing; {advice}"
        return
    known = _find_position(lake_dir, read_state(lake_dir))
    if not known.commit:
        yield POSITION_FILE, f"it is damaged, or of another lake; {advice}"
        return
    state = read_state(lake_dir, known.commit)
    for name in sorted(state.by_table.keys() | known.versions.keys()):
        mine = {file.path: file.bytes for file in _list_parquet(state, name)}
        try:
            listed = _replay(lake_dir, name, known.versions.get(name, 0))
        except LakeCorrupt as error:
            yield error.file, f"{error.reason}; {advice}"
            continue
        theirs = {f"{name}/{path}": add["size"] for path, add in listed.items()}
        if mine != theirs:
            count = len(mine.keys() ^ theirs.keys()) or "the sizes of some"
            text = f"it differs from commit {known.commit} in {count} files; {advice}"
            yield f"{name}/{FOLDER}", text


def _find_position(lake_dir: Path, state: LogState) -> Position:
    """Return what is published; nothing if that is unknown, or not of this history."""
    try:
        known, _digest = read_body(lake_dir, POSITION_FILE, Position)
        if known.commit <= state.number:
            is_newest = known.commit == state.number
            digest = state.digest if is_newest else read_commit(lake_dir, known.commit)[1]
            if known.digest == digest:
                return known
    except LakeCorrupt:
        pass  # derived data: it is written again
    return Position(0, "", SCHEMA_VERSION, state.digest, {})


def _read_commits(lake_dir: Path, after: int, last: int) -> list[Commit]:
    return [read_commit(lake_dir, number)[0] for number in range(after + 1, last + 1)]


def _plan(lake_dir: Path, known: Position, state: LogState) -> list[_Version]:
    """Return the version of every table as of ``state``."""
    commits = _read_commits(lake_dir, known.commit, state.number) if known.commit else []
    removed, added = _group_changes(commits)
    restates = known.schema_version != SCHEMA_VERSION
    found: list[_Version] = []
    for name in sorted(state.by_table.keys() | known.versions.keys()):
        number = known.versions.get(name, -1)
        gone, more = removed[name], added[name]
        try:
            while number >= 0 and (lake_dir / _name(name, number + 1)).exists():
                number += 1  # a publication was killed after this version
                after = _read_actions(lake_dir, name, number)[0]["commitInfo"]["tonlakeCommit"]
                rest = _group_changes(each for each in commits if each.number > after)
                gone, more = rest[0][name], rest[1][name]
        except (LakeCorrupt, LookupError, TypeError):
            number = -1
        if number < 0 or not (lake_dir / _name(name, number)).exists():
            shutil.rmtree(lake_dir / name / FOLDER, ignore_errors=True)
            found.append(_Version(name, 0, schema=True, added=_list_parquet(state, name)))
        elif gone or more or restates:
            found.append(_Version(name, number + 1, restates, tuple(more), tuple(sorted(gone))))
        else:
            found.append(_Version(name, number))
    return found


def _list_parquet(state: LogState, name: str) -> tuple[DataFile, ...]:
    """Return the files of a table that are not in packs."""
    return tuple(file for file in state.by_table.get(name, ()) if not file.pack)


def _group_changes(
    commits: Iterable[Commit],
) -> tuple[defaultdict[str, set[str]], defaultdict[str, list[DataFile]]]:
    """Return the net change of commits by table: paths they remove, and files they add."""
    removed, added = sum_changes(commits)
    again = removed & {file.path for file in added}
    gone: defaultdict[str, set[str]] = defaultdict(set)
    more: defaultdict[str, list[DataFile]] = defaultdict(list)
    for path in removed - again:
        if not path.endswith(PACKED_ENDING):
            gone[name_table(path)].add(path)
    for file in added:
        if file.path not in again and not file.pack:
            more[file.table].append(file)
    return gone, more


def _write_versions(
    lake_dir: Path, state: LogState, lake: str, versions: Sequence[_Version]
) -> None:
    """Write versions durably; they lead to ``state``, and ``lake`` is part of the tables' ids."""
    measures = sum(len(version.added) for version in versions) <= MEASURED_FILES
    day = datetime.fromisoformat(find_newest_day(state)).replace(tzinfo=UTC)
    time_ms = int(day.timestamp()) * 1000  # nothing here depends on the clock
    info = {
        "timestamp": time_ms,
        "operation": "WRITE",
        "engineInfo": "tonlake",
        "tonlakeCommit": state.number,
        "tonlakeMcSeqno": find_last_parquet(state),
    }
    with NewFiles("delta") as files:
        for version in versions:
            final = lake_dir / _name(version.table, version.number)
            make_folder(final.parent)
            actions: list[Action] = [{"commitInfo": info}]
            if version.schema:
                actions += [{"protocol": _PROTOCOL}] if not version.number else []
                actions.append(_describe_table(TABLES[version.table], lake))
            for path in version.removed:
                gone = {"path": path.partition("/")[2], "deletionTimestamp": time_ms}
                actions.append({"remove": gone | {"dataChange": True}})
            for file in version.added:
                stats = _measure(lake_dir, file) if measures else {"numRecords": file.rows}
                add = {
                    "path": file.path.partition("/")[2],
                    "partitionValues": {PARTITION: read_place(file.path).day},
                    "size": file.bytes,
                    "modificationTime": time_ms,
                    "dataChange": True,
                    "stats": _encode(stats),
                }
                actions.append({"add": add})
            files.write(final, "".join(f"{_encode(action)}\n" for action in actions).encode())
        files.finish()
    sync_folders(lake_dir / version.table / FOLDER for version in versions)


def _write_checkpoint(lake_dir: Path, version: _Version, lake: str) -> None:
    """Write the checkpoint of a version, and remove versions that are too old."""
    folder, number = lake_dir / version.table / FOLDER, version.number
    try:
        adds = [{"add": add} for add in _replay(lake_dir, version.table, number).values()]
    except LakeCorrupt:
        shutil.rmtree(folder)  # the next publication starts this table again
        return
    rows = [{"protocol": _PROTOCOL}, _describe_table(TABLES[version.table], lake), *adds]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=pa.schema(_CHECKPOINT)), sink, compression="zstd"
    )
    final = lake_dir / _name(version.table, number, "checkpoint.parquet")
    write_file(final, sink.getvalue().to_pybytes(), "delta")
    newest = _encode({"version": number, "size": len(rows)}).encode()
    write_file(folder / "_last_checkpoint", newest, "delta")
    for path in folder.glob("[0-9]*.*"):
        if int(path.name.partition(".")[0]) < number - KEPT_VERSIONS:
            path.unlink()


def describe_columns(table: Table) -> Action:
    """Return the columns of a table's files and their partition, as Spark's ``StructType``."""
    fields = [  # nullable, as older files may lack a column
        {
            "name": column.name,
            "type": _describe_type(column.arrow.type),
            "nullable": True,
            "metadata": {"comment": column.doc},
        }
        for column in (*table.columns, DAY)
    ]
    return {"type": "struct", "fields": fields}


def _describe_table(table: Table, lake: str) -> Action:
    """Return the action that describes a table: its id, columns and properties."""
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{lake}/{table.name}")),
            "name": table.name,
            "description": table.doc,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _encode(describe_columns(table)),
            "partitionColumns": [PARTITION],
            "configuration": _PROPERTIES,
            "createdTime": 0,
        }
    }


def _describe_type(kind: pa.DataType) -> str | Action:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _TYPES[kind.value_type], "containsNull": True}
    return _TYPES[kind]


def _measure(lake_dir: Path, file: DataFile) -> Action:
    """Return the statistics of a data file: rows, and the bounds of the columns that ascend."""
    try:
        metadata = pq.read_metadata(lake_dir / file.path)
    except (OSError, pa.ArrowException) as error:
        raise LakeCorrupt(file.path, f"it is not a Parquet file ({error})") from error
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    names = metadata.schema.names
    low, high, nulls = {}, {}, {}
    for name in list_bounded(TABLES[file.table]):
        if name not in names:
            continue
        columns = [group.column(names.index(name)) for group in groups]
        found = [column.statistics for column in columns]
        if all(each is not None and each.has_min_max and each.has_null_count for each in found):
            low[name] = _show(min(each.min for each in found))
            high[name] = _show(max(each.max for each in found))
            nulls[name] = sum(each.null_count for each in found)
    return {"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _show(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def _replay(lake_dir: Path, table: str, number: int) -> dict[str, Action]:
    """Return the files of a version by path in the table's folder, each as its ``add`` action."""
    adds: dict[str, Action] = {}
    start = number - number % CHECKPOINT_VERSIONS
    while start and not (lake_dir / _name(table, start, "checkpoint.parquet")).exists():
        start -= CHECKPOINT_VERSIONS
    if start:
        adds = _read_checkpoint(lake_dir, _name(table, start, "checkpoint.parquet"))
    for at in range(start + 1 if start else 0, number + 1):
        for action in _read_actions(lake_dir, table, at):
            if "remove" in action and adds.pop(action["remove"]["path"], None) is None:
                raise LakeCorrupt(_name(table, at), "it removes a file that is not there")
            if "add" in action:
                adds[action["add"]["path"]] = action["add"]
    return adds


def _read_checkpoint(lake_dir: Path, file: str) -> dict[str, Action]:
    try:
        rows = pq.read_table(lake_dir / file, columns=["add"])["add"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise LakeCorrupt(file, f"it cannot be read ({error})") from error
    adds = (add | {"partitionValues": dict(add["partitionValues"])} for add in rows if add)
    return {add["path"]: add for add in adds}


def _read_actions(lake_dir: Path, table: str, number: int) -> list[Action]:
    file = _name(table, number)
    try:
        return [json.loads(line) for line in (lake_dir / file).read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise LakeCorrupt(file, f"it cannot be read ({error})") from error


def _name(table: str, number: int, ending: str = "json") -> str:
    return f"{table}/{FOLDER}/{number:020}.{ending}"


def _encode(value: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(value, separators=(",", ":"))
