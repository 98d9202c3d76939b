"""Opens RocksDB stores while the node runs: read-only, and without writing to the node's folder.

rocksdict writes a file into every folder that it opens, even in read-only mode. So each store is
opened through a private folder with links to CURRENT and the manifest, while table files and
write-ahead logs are read in place (``db_paths``, ``wal_dir``). The private folders of a process are
in one folder of the system's temporary directory, which is locked as long as the process lives;
those of killed processes are removed by the next one.
"""

import fcntl
import os
import re
import shutil
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from rocksdict import AccessType, DBPath, DBRecoveryMode, Options, Rdict

from tonlake.ingest.errors import SourceError
from tonlake.lake.errors import advise
from tonlake.lake.file.regular import check_regular, open_regular, read_regular

PREFIX = "tonlake-node-"


class Scratch:
    """Creates private folders, and removes all of them in the end."""

    def __init__(self) -> None:
        """Remove the folders of dead processes, and create the one of this process."""
        root = Path(tempfile.gettempdir())
        for left_over in root.glob(f"{PREFIX}*"):
            _remove_if_dead(left_over)
        self.folder = root
        self._lock = -1
        while self._lock < 0:
            self.folder, self._lock = _make_locked_folder(root)

    def new_folder(self) -> Path:
        """Create an empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def close(self) -> None:
        """Remove all folders."""
        if self._lock >= 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _make_locked_folder(root: Path) -> tuple[Path, int]:
    """Return a new folder and the descriptor that locks it; -1 if another process removed it."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return folder, -1
    fcntl.flock(lock, fcntl.LOCK_EX)
    if folder.exists():
        return folder, lock
    os.close(lock)
    return folder, -1


def _remove_if_dead(folder: Path) -> None:
    """Remove ``folder`` unless a running process has locked it or it belongs to another user."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


CURRENT = "CURRENT"
LOG_SUFFIX = ".log"
_DATA_SUFFIXES = (".sst", LOG_SUFFIX)
_MANIFEST = re.compile(r"MANIFEST-\d+")
TRIES_UNCHANGED = 3
PAUSE_S = 0.01
"""Pause before a retry: the node replaces files within milliseconds."""
ALL_BYTES = 1 << 60
LOG_BYTES = 1 << 20


class StoreFiles(msgspec.Struct, frozen=True):
    """State of a store's files; it changes whenever the node writes to the store."""

    manifest: str
    manifest_state: tuple[int, int, int]
    log_bytes: dict[str, int]

    @property
    def shape(self) -> tuple[str, tuple[int, int, int], tuple[str, ...]]:
        """The part that changes when files are created or deleted, but not on appends to logs."""
        return self.manifest, self.manifest_state, tuple(sorted(self.log_bytes))


class Store:
    """One RocksDB; ``name`` is its folder relative to the node's, used in errors (SourceError)."""

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        self.folder = folder.resolve()
        self.name = name
        self._scratch = scratch
        self._private: Path | None = None
        self._db: Rdict | None = None

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it is absent."""
        try:
            value: bytes | None = self._opened().get(key)
        except Exception:  # else no context is entered, which costs more than the look-up
            with self._named_errors():
                raise
        return value

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """Return the values of keys, with None for absent keys."""
        with self._named_errors():
            values: Any = self._opened().get(list(keys))
        return list(values)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that begin with ``prefix`` and their values, in order of keys."""
        with self._named_errors():
            cursor = self._opened().iter()
            cursor.seek(prefix)
            while cursor.valid():
                key, value = cursor.key(), cursor.value()
                if not key.startswith(prefix):
                    return
                yield key, value
                cursor.next()
            cursor.status()  # raises if damage ended the iteration

    def close(self) -> None:
        """Close the store and remove its private folder."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None

    def look(self) -> StoreFiles:
        """Return the current state of the store's files."""
        failure = OSError()
        for _ in range(TRIES_UNCHANGED):  # files may be replaced between two system calls
            try:
                manifest = self._read_current()
                status = (self.folder / manifest).stat()
                check_regular(self.folder / manifest, status.st_mode)
                state = status.st_ino, status.st_size, status.st_mtime_ns
                return StoreFiles(manifest, state, self._list_logs())
            except OSError as error:
                failure = error
        text = "; ".join(filter(None, (str(failure), advise(failure))))
        raise SourceError(f"{self.name}: no readable RocksDB: {text}") from failure

    def _list_logs(self) -> dict[str, int]:
        """Return the sizes of write-ahead logs; RocksDB would hang on irregular files."""
        log_bytes = {}
        for item in list(os.scandir(self.folder)):
            if not item.name.endswith(_DATA_SUFFIXES):
                continue
            if not item.is_file():
                check_regular(self.folder / item.name, item.stat().st_mode)
            if item.name.endswith(LOG_SUFFIX):
                log_bytes[item.name] = item.stat().st_size
        return log_bytes

    def _read_current(self) -> str:
        text = read_regular(self.folder / CURRENT).decode("ascii", "replace").strip()
        if not _MANIFEST.fullmatch(text):
            raise SourceError(f"{self.name}/{CURRENT}: {text!r} is not the name of a manifest")
        return text

    def _opened(self) -> Rdict:
        if self._db is None:
            raise SourceError(f"{self.name}: the store is closed")
        return self._db

    def _open(
        self, options: Options, access: AccessType, families: dict[str, Options] | None = None
    ) -> None:
        folder = str(self.folder)
        options.set_db_paths([DBPath(folder, ALL_BYTES)])
        options.set_wal_dir(folder)
        # The last write of a log may be incomplete; damage before it must not be ignored.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        options.set_max_open_files(-1)  # tables stay readable after the node deletes them
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(LOG_BYTES)
        for path in self.folder.glob(f"*{LOG_SUFFIX}"):
            with suppress(FileNotFoundError):  # the node deletes logs
                check_log(path, f"{self.name}/{path.name}")
        with self._named_errors():
            self._db = Rdict(
                str(self._private_folder()),
                options=options,
                column_families=families,
                access_type=access,
            )

    def _private_folder(self) -> Path:
        if self._private is None:
            self._private = self._scratch.new_folder()
        return self._private

    def _link_manifest(self, manifest: str) -> None:
        """Link CURRENT and the manifest it names; remove links to deleted manifests."""
        private = self._private_folder()
        for old in private.glob("MANIFEST-*"):
            if not old.exists():
                old.unlink()
        for name in (CURRENT, manifest):
            if not os.path.lexists(private / name):
                (private / name).symlink_to(self.folder / name)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn errors of rocksdict, plain ``Exception``, into SourceError."""
        try:
            yield
        except Exception as error:
            if type(error) is not Exception:
                raise
            # Links to the manifest are in the private folder, which is gone when this is read.
            text = str(error).replace(str(self._private or self.folder), str(self.folder))
            raise SourceError(f"{self.name}: {text}") from error


_BLOCK_BYTES = 1 << 15
_RECORD = struct.Struct("<4xHB")
_RECYCLED = frozenset({5, 6, 7, 8, 11, 131})
"""Kinds of records in a log that may have the file of an earlier one: that is behind the newest
record, cut anywhere."""


def check_log(path: Path, name: str) -> None:
    """Raise SourceError if a record of a write-ahead log ends outside of its block.

    RocksDB refuses such logs, too, but some it reads for ever, and no signal ends that. The last
    block may be incomplete; recycled logs, which a node of TON does not have, are not checked.
    """
    with open_regular(path) as file:
        for start in range(0, os.fstat(file.fileno()).st_size - _BLOCK_BYTES, _BLOCK_BYTES):
            block, at = file.read(_BLOCK_BYTES), 0
            while at + _RECORD.size <= len(block):
                size, kind = _RECORD.unpack_from(block, at)
                if not start + at and kind in _RECYCLED:
                    return
                end = at + _RECORD.size + size
                if end > len(block):
                    raise SourceError(f"{name}: damaged: the record at byte {start + at} is torn")
                at = end


class FrozenStore(Store):
    """A snapshot of a store in which pending merges are readable.

    rocksdict does not have the node's merge operator: a key with a pending merge would crash the
    process or end an iteration early. RocksDB's StringAppendOperator without delimiter is used
    instead, so pending operands follow the value, oldest first.
    """

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        super().__init__(folder, name, scratch)
        failure = None
        for _ in range(TRIES_UNCHANGED):
            try:
                self._open_frozen()
            except SourceError as error:  # the node may have replaced files meanwhile
                self.close()
                failure = error
                time.sleep(PAUSE_S)
            else:
                return
        raise failure or SourceError(f"{self.name}: cannot be opened")

    def _open_frozen(self) -> None:
        private = self._private_folder()
        write_merge_options(private)
        with self._named_errors():
            options, families = Options.load_latest(str(private), ignore_unknown_options=True)
        self._link_manifest(self.look().manifest)
        # The merge operator takes effect only through the options of the column families.
        self._open(options, AccessType.read_only(error_if_log_file_exist=False), families)


def write_merge_options(folder: Path) -> None:
    """Write the OPTIONS file of a new store, but with a merge operator that rocksdict has."""
    with tempfile.TemporaryDirectory(dir=folder) as template:
        Rdict(template, options=Options(raw_mode=True)).close()
        (path,) = Path(template).glob("OPTIONS-*")
        text = path.read_text(encoding="utf-8")
        shutil.copy(Path(template) / "rocksdict-config.json", folder)
    operator = r"\1merge_operator={id=StringAppendOperator;delimiter=}"
    edited = re.sub(r"(?m)^(\s*)merge_operator=.*$", operator, text)
    (folder / path.name).write_text(edited, encoding="utf-8")


TRIES = 200
"""Attempts to open a store that keeps changing: two seconds in all."""


class FollowedStore(Store):
    """A small store that the node may be writing; ``catch_up`` makes new values visible."""

    def __init__(self, folder: Path, name: str, scratch: Scratch) -> None:
        super().__init__(folder, name, scratch)
        self._seen: StoreFiles | None = None
        self._is_secondary = False
        self.catch_up()

    def catch_up(self) -> bool:
        """Make the node's new writes visible; return False if its files did not change.

        When files were created or deleted, the store is reopened, since a secondary would prefer
        old values of a log to newer ones of tables. The set of files must not change meanwhile: a
        log deleted during opening would leave a gap.
        """
        failure, unchanged = None, 0
        for _ in range(TRIES):
            before = self.look()
            if before == self._seen:
                return False
            if self._seen is None or self._seen.shape != before.shape:
                self.close()
            try:
                if self._seen is None:
                    self._link_manifest(before.manifest)
                if self._db is None:
                    # It fails if a file is damaged, and is enough until the node writes more.
                    access = AccessType.read_only(error_if_log_file_exist=False)
                    self._open(Options(raw_mode=True), access)
                else:
                    self._follow()
            except SourceError as error:  # the node replaced files meanwhile
                self.close()
                failure = error
            stable = self.look().shape == before.shape
            if stable and self._db is not None:
                self._seen = before
                return True
            self._seen = None
            unchanged += stable
            if unchanged >= TRIES_UNCHANGED:
                break
            time.sleep(PAUSE_S)
        self.close()
        raise failure or SourceError(f"{self.name}: its files change faster than they can be read")

    def close(self) -> None:
        """Close the store and remove its private folder."""
        super().close()
        self._seen, self._is_secondary = None, False

    def _follow(self) -> None:
        """Read what the node has written since, as a secondary from the first time on.

        A secondary that finds a damaged table silently falls back to an older state than the strict
        opening found.
        """
        if not self._is_secondary:
            newest = self._opened().latest_sequence_number()
            self._opened().close()
            secondary = str(self._private_folder() / "secondary")
            options = Options(raw_mode=True)
            options.set_max_file_opening_threads(1)  # each catch-up starts them all, needlessly
            self._open(options, AccessType.secondary(secondary))
            self._is_secondary = True
            found = self._opened().latest_sequence_number()
            if found < newest:
                raise SourceError(f"{self.name}: its files are damaged: write {found} of {newest}")
        with self._named_errors():
            self._opened().try_catch_up_with_primary()
