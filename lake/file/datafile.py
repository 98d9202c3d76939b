"""Writes the data files of a commit durably: all of them or none."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tonlake.lake.file.writer import PLAIN_ROWS, encode_parquet, encode_stream
from tonlake.lake.log.disk import NewFiles, make_folder, reach, sync_folders, write_temporary
from tonlake.lake.log.place import PACKED_ENDING, Derivation, NewFile, Place, pack_path, path_at
from tonlake.lake.log.state import DataFile, LogState, find_paths
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.settings import LakeSettings

Written = tuple["Path", DataFile]
"""A file that is complete and synced under a temporary name, and its description."""

Submit = Callable[["Callable[[NewFile], Written]", "NewFile"], "Future[Written]"]
"""Starts a call in a thread or another process, and returns a future of its result."""


class Changes(NamedTuple):
    """Files that a commit adds, and paths that are no longer live after it."""

    added: tuple[DataFile, ...]
    removed: tuple[str, ...]


def encode_file(file: NewFile, settings: LakeSettings) -> tuple[DataFile, pa.Buffer]:
    """Return the description and the bytes of a file."""
    data = encode_parquet(file.rows, TABLES[file.table], settings)
    sha256 = hashlib.sha256(data).hexdigest()
    path = path_at(file.table, file.place, sha256)
    rows = file.rows.num_rows
    return DataFile(path, file.table, rows, data.size, sha256, SCHEMA_VERSION), data


def encode_pack(files: Iterable[NewFile], place: Place) -> tuple[list[DataFile], bytes]:
    """Return the descriptions and the bytes of files in one pack; the place is the commit's."""
    streams = [
        (file, encode_stream(file.rows, TABLES[file.table])) for file in files if file.rows.num_rows
    ]
    whole = b"".join([data for _file, data in streams])
    pack = pack_path(place, len(whole), hashlib.sha256(whole).hexdigest())
    packed, offset = list[DataFile](), 0
    for file, data in streams:
        sha256 = hashlib.sha256(data).hexdigest()
        path = path_at(file.table, file.place, sha256, PACKED_ENDING)
        about = (file.rows.num_rows, len(data), sha256, SCHEMA_VERSION)
        packed.append(DataFile(path, file.table, *about, pack=pack, offset=offset))
        offset += len(data)
    return packed, whole


def write_ahead(lake_dir: Path, settings: LakeSettings, file: NewFile) -> Written:
    """Write a file under a temporary name, in any process; no commit lists it yet."""
    described, data = encode_file(file, settings)
    final = lake_dir / described.path
    make_folder(final.parent)
    return write_temporary(final, data, "file"), described


class FilesAhead:
    """Large files of a commit, written in the background; those that no commit took are removed."""

    def __init__(self, lake_dir: Path, settings: LakeSettings, submit: Submit) -> None:
        self._write, self._submit = partial(write_ahead, lake_dir, settings), submit
        self._begun: list[tuple[NewFile, Future[Written]]] = []

    def begin(self, files: Iterable[NewFile]) -> None:
        """Start writing the large ones of ``files``."""
        for file in files:
            if file.rows.num_rows > PLAIN_ROWS:
                self._begun.append((file, self._submit(self._write, file)))

    def wait(self) -> None:
        """Wait until every file is written or has failed."""
        for _file, task in self._begun:
            task.exception()

    def take(self, file: NewFile) -> Written | None:
        """Return a file that was written ahead; None if it was not."""
        for begun, task in self._begun:
            if begun.rows is file.rows and begun.place == file.place:
                written = task.result()
                # A sweep without a grace period may have removed it before the log was locked.
                return written if written[0].exists() else None
        return None

    def close(self) -> None:
        """Remove the files that no commit took."""
        for _file, task in self._begun:
            task.cancel()
        for _file, task in self._begun:
            with suppress(Exception, CancelledError):  # raised before, or its commit has failed
                task.result()[0].unlink(missing_ok=True)


@contextmanager
def open_ahead(
    lake_dir: Path, settings: LakeSettings, submit: Submit | None = None
) -> Iterator[FilesAhead]:
    """Yield a writer of files ahead; it writes by ``submit``, or else in a thread."""
    with ExitStack() as stack:
        if submit is None:
            pool = ThreadPoolExecutor(1, thread_name_prefix="encode")
            submit = stack.enter_context(pool).submit
        yield stack.enter_context(closing(FilesAhead(lake_dir, settings, submit)))


def write_changes(
    lake_dir: Path,
    state: LogState,
    derivation: Derivation,
    settings: LakeSettings,
    ahead: FilesAhead | None = None,
    pack: Place | None = None,
) -> Changes:
    """Write files, and return how they change the live files of ``state``.

    A file that is already live is rewritten, which repairs it if it is damaged, but is not a
    change. On any failure the new files are removed. ``ahead`` may have written some already.
    With the place of a ``pack``, all files are written into one, those that are live again.
    """
    written: list[DataFile] = []
    with ExitStack() as undo:
        undo.callback(lambda: remove_files(lake_dir, list_unlisted(written, state)))
        with NewFiles("file") as files:
            if pack:
                packed, data = encode_pack(derivation.files, pack)
                for path in {file.pack for file in packed}:
                    make_folder((lake_dir / path).parent)
                    files.write(lake_dir / path, data)
                written += packed
            for file in () if pack else derivation.files:
                done = ahead.take(file) if ahead else None
                if done is not None:
                    temporary, described = done
                    files.adopt(lake_dir / described.path, temporary)
                elif file.rows.num_rows:
                    described, data = encode_file(file, settings)
                    make_folder((lake_dir / described.path).parent)
                    files.write(lake_dir / described.path, data)
                else:
                    continue
                written.append(described)
            files.finish()
        reach("commit.files_renamed")
        sync_folders((lake_dir / path).parent for path in {file.stored for file in written})
        reach("commit.folders_synced")
        undo.pop_all()
    replaced = find_paths(state.by_place, derivation.removed)
    removed = sorted(replaced - {file.path for file in written})
    return Changes(tuple(list_unlisted(written, state)), tuple(removed))


def list_unlisted(files: Iterable[DataFile], state: LogState) -> list[DataFile]:
    """Return the files and index segments that are not live in a state, each once."""
    by_path = {file.path: file for file in files}
    live = find_paths(state.by_place, by_path.keys()) | {each.path for each in state.segments}
    return [file for path, file in by_path.items() if path not in live]


def remove_files(lake_dir: Path, files: Iterable[DataFile]) -> None:
    """Remove the files of a failed commit; no live commit lists them."""
    for file in files:
        (lake_dir / file.stored).unlink(missing_ok=True)
