"""A folder of a local file system or of object storage, read and written through Arrow."""

from __future__ import annotations

import hashlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa
from pyarrow import fs

from tonlake.lake.errors import LakeCorrupt, QueryError, StorageError
from tonlake.lake.log.disk import make_folder, open_temporary, seal_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

_NO_BUCKET = (
    "there is no such bucket at {endpoint}: make it, or correct the URL or AWS_ENDPOINT_URL"
)
_REGION = "the bucket is in another region: set AWS_REGION"
_REFUSED = (
    "{endpoint} refuses: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN "
    "if it belongs to them, or AWS_PROFILE, of a user that may list, read and write there"
)
_CUT = (
    "{endpoint} cannot be reached, or broke off: check AWS_ENDPOINT_URL and the network, and run "
    "the same command again"
)
_ADVICE = {
    r"NO_SUCH_BUCKET|NoSuchBucket|InvalidBucketName": _NO_BUCKET,
    r"PermanentRedirect|AuthorizationHeaderMalformed|HTTP status 301": _REGION,
    r"ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|HTTP status 40[13]|[Cc]redentials": _REFUSED,
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|curlCode|HTTP status 5\d\d|SLOW_DOWN": _CUT,
}
"""What can be done, by what stands in the text of an error; the first that fits."""

_AWS = re.compile(r"AWS Error|curlCode|NoSuchBucket")


def find_endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the URL of the server that the variables of Amazon's tools name; None is Amazon."""
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None


def explain(name: str, text: str, environment: Mapping[str, str]) -> StorageError | None:
    """Return the error to report for a failure at ``name``; None if storage did not cause it."""
    if _AWS.search(text) is None:
        return None
    advice = next(
        (advice for words, advice in _ADVICE.items() if re.search(words, text)), "it failed"
    )
    endpoint = find_endpoint(environment) or "Amazon S3"
    return StorageError(f"{name}: {advice.format(endpoint=endpoint)} ({text.strip()})")


_URL = re.compile(r"s3a?://(?P<bucket>[^/]*)/*(?P<prefix>.*?)/*")
_NO_FILE = {fs.FileType.Directory, fs.FileType.Unknown}
_CONNECT_S, _REQUEST_S = 10, 60
_THREADS = 8
"""Requests to object storage at a time: each takes tens of milliseconds, whatever its size."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Readable(Protocol):
    """Bytes that are read one after the other."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""


class Source(Protocol):
    """A folder that is only read: a ``Storage``, or one that a web server has."""

    name: str
    is_local: bool

    def open(self, path: str) -> AbstractContextManager[Readable]:
        """Open a file for reading; raises as ``Storage.open``."""


class Storage:
    """A folder; the paths of its files are relative to it, with forward slashes."""

    def __init__(self, filesystem: fs.FileSystem, root: str, name: str) -> None:
        """Take a file system, a path there, and how errors call it; ``open_storage`` gives one."""
        self.filesystem = filesystem
        self.root = root
        self.name = name
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)

    def find(self, path: str) -> fs.FileInfo:
        """Return the kind and the size of what stands at a path, which may be nothing.

        Raises:
            StorageError: object storage does not answer.
        """
        with self.naming_faults():
            return self.filesystem.get_file_info(self._locate(path))

    def list_files(self, folders: Iterable[str]) -> dict[str, fs.FileInfo]:
        """Return what stands below some folders, by its path.

        Raises:
            StorageError: object storage does not answer.
        """
        found = {}
        with self.naming_faults():
            for folder in folders:
                below = fs.FileSelector(self._locate(folder), allow_not_found=True, recursive=True)
                for info in self.filesystem.get_file_info(below):
                    found[info.path[len(self.root) + 1 :]] = info
        return found

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        """Open a file for reading; nothing waits for what is no file.

        Raises:
            OSError: it is not there, or is no regular file.
            StorageError: object storage does not answer.
        """
        if self.is_local and self.find(path).type in _NO_FILE:
            raise OSError(f"not a regular file: {self.name}/{path}")
        with self.naming_faults(), self.filesystem.open_input_file(self._locate(path)) as stream:
            yield stream

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises as ``open``."""
        with self.open(path) as stream:
            data: bytes = stream.read()
        return data

    def write(self, path: str, chunks: Iterable[bytes], sha256: str) -> None:
        """Write a file, which is there and durable once its bytes have given their digest.

        Raises:
            LakeCorrupt: they give another; there is no such file.
            LakeFull: no room.
            StorageError: object storage does not answer.
        """
        if not self.is_local:
            with self.naming_faults():
                self._upload(path, chunks, sha256)
            return
        final = Path(self._locate(path))
        folder = final.parent
        make_folder(folder)
        with open_temporary(folder, "file") as (copy, temporary):
            copy.writelines(chunks)
            _compare(path, seal_file(copy, "file"), sha256)
            temporary.replace(final)
        sync_folder(folder)

    def _upload(self, path: str, chunks: Iterable[bytes], sha256: str) -> None:
        """Write an object, which has its full size only if its bytes have given their digest."""
        digest = hashlib.sha256()
        held = b""
        try:
            with self.filesystem.open_output_stream(self._locate(path)) as stream:
                for chunk in chunks:
                    digest.update(chunk)
                    stream.write(held)
                    held = chunk
                _compare(path, digest.hexdigest(), sha256)
                stream.write(held)
        except BaseException:
            # To leave the stream closes it, which makes an object of what was written so far.
            with suppress(OSError):
                self.filesystem.delete_file(self._locate(path))
            raise

    def remove(self, path: str) -> None:
        """Remove a file, unless it is gone already.

        Raises:
            StorageError: object storage does not answer.
        """
        with self.naming_faults(), suppress(FileNotFoundError):
            self.filesystem.delete_file(self._locate(path))

    @contextmanager
    def naming_faults(self) -> Iterator[None]:
        """Turn what the client of object storage raises, in a query too, into StorageError."""
        try:
            yield
        except (OSError, pa.ArrowException, QueryError) as error:
            fault = explain(self.name, str(error), os.environ)
            if fault is None:
                raise
            raise fault from error

    def _locate(self, path: str) -> str:
        return f"{self.root}/{path}"


def _compare(path: str, digest: str, sha256: str) -> None:
    if digest != sha256:
        raise LakeCorrupt(path, "its bytes do not match its digest")


def is_url(place: str) -> bool:
    """Whether a place is in object storage."""
    return place.startswith(("s3://", "s3a://"))


def open_storage(place: str | Path) -> Storage:
    """Return a local folder, or what ``s3://bucket/prefix`` names.

    Server, region and credentials come from the variables of Amazon's tools: AWS_ENDPOINT_URL,
    AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE.

    Raises:
        StorageError: the URL is none, or the server has no such bucket, refuses, or is not there.
    """
    text = str(place)
    if not is_url(text):
        return Storage(fs.LocalFileSystem(), str(Path(place).absolute()), text)
    match = _URL.fullmatch(text)
    if match is None or not match["bucket"]:
        raise StorageError(f"{text} names no bucket: write s3://bucket/prefix")
    bucket, prefix = match["bucket"], match["prefix"]
    root = f"{bucket}/{prefix}" if prefix else bucket
    try:
        filesystem = fs.S3FileSystem(
            endpoint_override=find_endpoint(os.environ),
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
            allow_delayed_open=True,  # one request for a small file instead of three
        )
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{text}: the variables AWS_... are wrong: {error}") from error
    except ImportError as error:
        raise StorageError(
            f"{text}: the one-file binary has no client of S3: install tonlake with pip"
        ) from error
    storage = Storage(filesystem, root, f"s3://{root}")
    with storage.naming_faults():
        if filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
            raise OSError(f"NoSuchBucket: {bucket}")
    return storage


def work_through(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *storages: Source
) -> Iterator[_Result]:
    """Yield the result for each item, in order; several at a time where a storage is remote.

    After the first error, which it raises, no further item is begun.
    """
    if all(storage.is_local for storage in storages):
        yield from map(work, items)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            yield from pool.map(work, items)
        finally:
            pool.shutdown(cancel_futures=True)
