"""Manifests of exports: a folder of data files with ``manifest.json``.

The files have the same paths as in the lake. ``manifest.json``, written last, is one JSON object
with the SHA-256 of its body, like an entry of the log. It lists every file with its digest, so that
the receiver can check that everything arrived.
"""

from __future__ import annotations

import hashlib
import os
import re
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.errors import LakeCorrupt, PieceRefused
from tonlake.lake.log.envelope import Envelope, encode_entry
from tonlake.lake.log.network import Network
from tonlake.lake.log.own import OwnTable
from tonlake.lake.log.place import Place, is_open, read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import Baseline, DataFile
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.transfer.check import check_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyarrow.fs import FileInfo

    from tonlake.lake.storage.storage import Source, Storage

MANIFEST = "manifest.json"
FORMAT = 1
"""Version of the manifest format."""

_DAY = r"\d{4}-\d\d-\d\d"
_DAYS = re.compile(rf"(?P<first>{_DAY})?\.\.(?P<last>{_DAY})?|(?P<one>{_DAY})")
_CHUNK_BYTES = 8 << 20


class Days(msgspec.Struct, frozen=True):
    """UTC days, both ends included; None means unbounded."""

    first: str | None = None
    last: str | None = None

    def has(self, day: str) -> bool:
        """Whether ``day``, as ``YYYY-MM-DD``, is included."""
        return (self.first or "") <= day and (self.last is None or day <= self.last)


class BlockRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Masterchain blocks of one day with one file per table, and the shards they commit."""

    first_mc_seqno: int
    last_mc_seqno: int
    day: str
    shards: dict[str, Range]
    zero_state: bool

    @property
    def place(self) -> Place:
        """The place named in the paths of its files."""
        return Place(self.first_mc_seqno, self.last_mc_seqno, self.day)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an export: ranges in order, and their files; index segments if ``whole``.

    A whole lake includes its baseline; a pruned one its kept rows and the pruned ranges.
    ``tables`` are the definitions of user-defined tables; the receiver computes their rows.
    """

    format: int
    schema_version: int
    snapshot: int
    whole: bool
    network: Network | None
    ranges: tuple[BlockRange, ...] = msgspec.field(name="stretches")
    files: tuple[DataFile, ...]
    segments: tuple[DataFile, ...] = msgspec.field(name="runs")
    pruned: tuple[Range, ...] | msgspec.UnsetType = msgspec.UNSET
    tables: tuple[OwnTable, ...] | msgspec.UnsetType = msgspec.UNSET
    baseline: Baseline | msgspec.UnsetType = msgspec.UNSET

    @property
    def earlier_files(self) -> list[DataFile]:
        """Files of rows from before the first range: the baseline, or kept rows."""
        last = 0 if self.pruned is msgspec.UNSET else self.pruned[-1][1]
        places = ((each, read_place(each.path)) for each in self.files)
        return [each for each, at in places if at.is_baseline or 0 < at.last <= last]

    def files_by_place(self) -> dict[Place, list[DataFile]]:
        """Return the files at each place."""
        found: dict[Place, list[DataFile]] = {}
        for each in self.files:
            found.setdefault(read_place(each.path), []).append(each)
        return found

    @property
    def open_files(self) -> list[DataFile]:
        """Files of rows that are not final; only a whole lake has them."""
        return [each for each in self.files if is_open(each.path)]


def parse_days(text: str) -> Days:
    """Parse ``A..B``, ``A..``, ``..B`` or ``A``, each ``YYYY-MM-DD``.

    Raises:
        ValueError: it is malformed, or a day does not exist.
    """
    match = _DAYS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a range of days: write 2026-11-01..2026-11-30")
    one = match["one"]
    days = Days(one or match["first"], one or match["last"])
    for day in (days.first, days.last):
        try:
            date.fromisoformat(day or "2000-01-01")
        except ValueError as error:
            raise ValueError(f"{day} is not a day: {error}") from error
    if days.first and days.last and days.first > days.last:
        raise ValueError(f"{text!r} ends before it begins")
    return days


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest."""
    return encode_entry(manifest)[0]


def read_manifest(storage: Storage) -> Manifest | None:
    """Return the manifest of a folder; None if there is none.

    Raises:
        PieceRefused: it is damaged, impossible, or of a later version of this program.
        StorageError: object storage does not answer.
    """
    try:
        data = storage.read(MANIFEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise PieceRefused(f"{storage.name}/{MANIFEST} cannot be read: {reason}") from error
    try:
        envelope = msgspec.json.decode(data, type=Envelope)
        raw = bytes(envelope.body)
        if hashlib.sha256(raw).hexdigest() != envelope.sha256:
            raise PieceRefused(f"{MANIFEST} is damaged: its bytes do not match its digest")
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PieceRefused(
            f"{MANIFEST} is damaged, or was written by a later version of tonlake ({error})"
        ) from error
    if manifest.format != FORMAT:
        raise PieceRefused(
            f"{MANIFEST} has format {manifest.format}, but this version reads {FORMAT}"
        )
    check_manifest(manifest)
    return manifest


def check_version(manifest: Manifest) -> None:
    """Reject an export that has features unknown to this version.

    Raises:
        PieceRefused: a later version wrote it.
    """
    known = all(file.table in TABLES for file in manifest.files)
    if manifest.schema_version > SCHEMA_VERSION or not known:
        raise PieceRefused(
            f"the export has schema version {manifest.schema_version}, but this version of "
            f"tonlake writes {SCHEMA_VERSION}: install a newer one"
        )


def copy_file(
    source: Source, target: Storage, file: DataFile, standing: Mapping[str, FileInfo]
) -> bool:
    """Copy one file and verify its digest; return False if the copy exists already.

    ``standing`` lists the target's files. An object of the right size counts as the copy without
    being read: its name contains a part of the digest, and ``Storage.write`` writes the last bytes
    only if the digest matches.

    Raises:
        LakeCorrupt: the source is missing, or its bytes differ from those committed.
        LakeFull: no room.
        StorageError: object storage does not answer.
    """
    held = standing.get(file.path)
    is_there = held is not None and held.is_file and held.size == file.bytes
    if is_there and (not target.is_local or _digest(target, file) == file.sha256):
        return False
    target.write(file.path, _read_chunks(source, file), file.sha256)
    return True


def _read_chunks(storage: Source, file: DataFile) -> Iterator[bytes]:
    """Yield the bytes of a file; stop reading one that is larger than it should be."""
    size = 0
    try:
        with storage.open(file.path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > file.bytes:
                    raise LakeCorrupt(file.path, f"it has more than {file.bytes} bytes")
                yield chunk
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error) from error


def _digest(storage: Storage, file: DataFile) -> str:
    digest = hashlib.sha256()
    for chunk in _read_chunks(storage, file):
        digest.update(chunk)
    return digest.hexdigest()
